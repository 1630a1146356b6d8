#include "ps_server/service/chief_admission.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace keelson {

absl::Status ChiefAdmission::Admit(absl::string_view call, uint64_t incarnation) {
  MutexLock lock(&mu_);
  if (replaced_.count(incarnation) != 0) {
    return absl::AbortedError(absl::StrCat(call, ": another chief has taken the caller's place"));
  }
  const absl::Duration now = clock_->Monotonic();
  if (newest_.has_value() && newest_ != incarnation && now < last_call_ + exclusive_) {
    return absl::AlreadyExistsError(
        absl::StrCat(call, ": another chief was heard ", absl::FormatDuration(now - last_call_),
                     " ago; in a job without --job_token_file a second one is let in after ",
                     absl::FormatDuration(exclusive_), " of its silence, in ",
                     absl::FormatDuration(last_call_ + exclusive_ - now), " at the earliest"));
  }
  last_call_ = now;
  if (newest_ == incarnation) return absl::OkStatus();
  if (newest_.has_value()) {
    replaced_.insert(*newest_);
    LogInfo("the chief has been restarted");
  }
  newest_ = incarnation;
  return absl::OkStatus();
}

absl::Duration ChiefAdmission::Silence() const {
  MutexLock lock(&mu_);
  return clock_->Monotonic() - last_call_;
}

}  // namespace keelson
