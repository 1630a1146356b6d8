// Logs a failure that repeats, without filling the log.
#ifndef KEELSON_CORE_BASE_TROUBLE_LOG_H_
#define KEELSON_CORE_BASE_TROUBLE_LOG_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace keelson {

// Not thread-safe.
class TroubleLog {
 public:
  // Lines begin with `what`. `clock` outlives this.
  TroubleLog(std::string what, const Clock* clock, absl::Duration repeat = absl::Minutes(1))
      : what_(std::move(what)), clock_(clock), repeat_(repeat) {}

  // Notes the outcome of an attempt. A failure is logged when it is the first one, when its code
  // differs from the last one's (texts of the same failure may differ), or when `repeat` has passed
  // since the last line. The first success after failures is logged, too. Returns whether it
  // logged.
  bool Note(const absl::Status& outcome);

 private:
  const std::string what_;
  const Clock* const clock_;
  const absl::Duration repeat_;
  absl::StatusCode last_ = absl::StatusCode::kOk;
  absl::Duration logged_at_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_TROUBLE_LOG_H_
