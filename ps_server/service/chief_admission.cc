#include "ps_server/service/chief_admission.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace keelson {

absl::Status ChiefAdmission::Admit(absl::string_view call, uint64_t incarnation) {
  MutexLock lock(&mu_);
  if (replaced_.count(incarnation) != 0) {
    return absl::AbortedError(absl::StrCat(call, ": another chief has taken the caller's place"));
  }
  last_call_ = clock_->Monotonic();
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
