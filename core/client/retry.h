// Patience with peers that are away.
#ifndef KEELSON_CORE_CLIENT_RETRY_H_
#define KEELSON_CORE_CLIENT_RETRY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

struct RetryOptions {
  absl::Duration give_up_after = absl::Minutes(10);
  // Pauses double from the first to the longest.
  absl::Duration first_pause = absl::Milliseconds(20);
  absl::Duration longest_pause = absl::Seconds(1);
  // While waiting, a warning with the newest error is logged this often.
  absl::Duration report_every = absl::Seconds(30);
};

// UNAVAILABLE and DEADLINE_EXCEEDED: the peer may answer next time. They never mean that the call
// was not executed.
bool IsTransient(const absl::Status& status);

// Calls until the answer is not transient, and returns it. CANCELLED once `stop` is raised. After
// `give_up_after` returns the last error with `what` ("waiting for ps-1") before its text.
absl::Status CallWithRetries(const RetryOptions& options, absl::string_view what,
                             const Clock* clock, const StopSignal* stop,
                             absl::FunctionRef<absl::Status()> call);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_RETRY_H_
