// What the processes of a soak hold of the machine, and whether that grows.
#ifndef KEELSON_TESTS_SOAK_PROCESS_WATCH_H_
#define KEELSON_TESTS_SOAK_PROCESS_WATCH_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "core/cluster/task.h"

namespace keelson {

// Looks at the newest process of each task. Not thread-safe.
class ProcessWatch {
 public:
  // Reads what the process holds; one that the task did not have before is watched from now on.
  void Look(const Task& task, pid_t pid);
  void Forget(const Task& task) { watched_.erase(task); }

  // How long the task's process has been watched; nothing: it is not.
  std::optional<absl::Duration> Age(const Task& task) const;

  // Fails the test for each process that has grown much since it was 10 s old.
  void ExpectNoGrowth() const;

 private:
  struct Holdings {
    int64_t resident_bytes = 0;
    int64_t files = 0;
  };
  struct Watched {
    pid_t pid = 0;
    absl::Time started;
    std::optional<Holdings> first;  // once it has warmed up
    Holdings last;
  };
  static Holdings HoldingsOf(pid_t pid);

  std::map<Task, Watched> watched_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SOAK_PROCESS_WATCH_H_
