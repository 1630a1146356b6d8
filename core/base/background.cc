#include "core/base/background.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/scheduler.h"
#include "core/base/thread.h"

namespace keelson {
namespace {

constexpr int kNice = 10;

}  // namespace

void RunInBackground(absl::FunctionRef<void()> work) {
  Thread thread([&work] {
    // On Linux the priority is the thread's; the threads of a Scheduler share one.
    if (Scheduler::Current() == nullptr) {
      setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
    }
    work();
  });
  thread.Join();
}

}  // namespace keelson
