#include "worker/memberships.h"

#include "core/base/log.h"

namespace keelson {

absl::Status RunMemberships(const RetryOptions& retry, Progress* progress, const Clock* clock,
                            const StopSignal* stop, absl::FunctionRef<int64_t()> finished_steps,
                            absl::FunctionRef<absl::Status()> run) {
  absl::Duration pause = retry.first_pause;
  absl::Duration trained_at = clock->Monotonic();
  while (true) {
    const int64_t steps = finished_steps();
    const absl::Status status = run();
    if (!absl::IsAborted(status)) return status;
    const absl::Duration now = clock->Monotonic();
    if (finished_steps() > steps) {
      trained_at = now;
      pause = retry.first_pause;
    }
    if (now - trained_at >= retry.give_up_after) return status;
    LogWarning("this membership is over, registering again: ", status.message());
    progress->DropLeases();
    stop->WaitFor(pause);
    pause = NextPause(retry, pause);
  }
}

}  // namespace keelson
