#include "core/client/services/retry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace keelson {

bool IsTransient(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

absl::Duration NextPause(const RetryOptions& options, absl::Duration pause) {
  const absl::Duration growth = std::max(pause / 10, absl::Microseconds(1));
  return std::min(pause + growth, options.longest_pause);
}

absl::Status CallWithRetries(const RetryOptions& options, absl::string_view what,
                             const Clock* clock, const StopSignal* stop,
                             absl::FunctionRef<absl::Status()> call) {
  const absl::Duration start = clock->Monotonic();
  absl::Duration reported = start;
  absl::Duration pause = options.first_pause;
  while (true) {
    if (stop->raised()) return absl::CancelledError(absl::StrCat(what, ": asked to stop"));
    const absl::Status status = call();
    if (!IsTransient(status)) return status;
    const absl::Duration now = clock->Monotonic();
    if (now - start >= options.give_up_after) {
      return absl::Status(
          status.code(),
          absl::StrCat(what, " for ", absl::FormatDuration(now - start), ": ", status.message()));
    }
    if (now - reported >= options.report_every) {
      LogWarning(what, " for ", absl::FormatDuration(now - start), ": ", status.message());
      reported = now;
    }
    stop->WaitFor(pause);
    pause = NextPause(options, pause);
  }
}

}  // namespace keelson
