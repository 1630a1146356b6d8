// Calls of all servers at the start of a job, when one of them may still go away and come back.
#ifndef KEELSON_CHIEF_LIFECYCLE_START_CALLS_H_
#define KEELSON_CHIEF_LIFECYCLE_START_CALLS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/servers/server_group.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

// The pause before what has failed at the start is tried again.
inline constexpr absl::Duration kStartPause = absl::Milliseconds(200);

// Not thread-safe.
class StartCalls {
 public:
  // A call is repeated for at most `patience`. When `stop` is raised, the chief is to leave. All
  // outlive this.
  StartCalls(absl::Duration patience, ServerGroup* servers, const Clock* clock,
             const StopSignal* stop)
      : patience_(patience), servers_(servers), clock_(clock), stop_(stop) {}

  // Runs `call`, which calls all servers; repeats it while it is UNAVAILABLE or DEADLINE_EXCEEDED,
  // since one of them may be away and come back, and returns its last status. Waits before each
  // repetition until all servers answer. CANCELLED: `stop` was raised. Errors of
  // ServerGroup::WaitUntilReachable.
  absl::Status Run(absl::FunctionRef<absl::Status()> call);

 private:
  const absl::Duration patience_;
  ServerGroup* const servers_;
  const Clock* const clock_;
  const StopSignal* const stop_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_START_CALLS_H_
