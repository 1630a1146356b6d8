// Retries of calls to peers that are away.
#ifndef KEELSON_CORE_CLIENT_SERVICES_RETRY_H_
#define KEELSON_CORE_CLIENT_SERVICES_RETRY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

struct RetryOptions {
  absl::Duration give_up_after = absl::Minutes(10);
  // Pauses grow by a tenth each, from the first to the longest. So a pause is about a tenth of the
  // time waited so far: a peer that was away briefly is reached soon after its return, and one that
  // stays away is called once per longest pause.
  absl::Duration first_pause = absl::Milliseconds(20);
  absl::Duration longest_pause = absl::Seconds(1);
  // While waiting, a warning with the newest error is logged this often.
  absl::Duration report_every = absl::Seconds(30);
};

// UNAVAILABLE and DEADLINE_EXCEEDED: the peer may answer the next call. Neither says that the call
// was not executed.
bool IsTransient(const absl::Status& status);

// The pause that follows `pause`.
absl::Duration NextPause(const RetryOptions& options, absl::Duration pause);

// Calls until the answer is not transient, and returns it. CANCELLED once `stop` is raised. After
// `give_up_after` returns the last error with `what` ("waiting for ps-1") before its text.
absl::Status CallWithRetries(const RetryOptions& options, absl::string_view what,
                             const Clock* clock, const StopSignal* stop,
                             absl::FunctionRef<absl::Status()> call);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_RETRY_H_
