#include "core/base/background.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace keelson {
namespace {

constexpr int kNice = 10;

}  // namespace

void RunInBackground(absl::FunctionRef<void()> work) {
  std::thread thread([&work] {
    // On Linux the priority is the thread's.
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
    work();
  });
  thread.join();
}

}  // namespace keelson
