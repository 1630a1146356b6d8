#include "ps_server/service/chief_admission.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::Status ChiefAdmission::CheckTerm(absl::string_view call,
                                       const v1::RequestHeader& chief) const {
  const bool same = chief.incarnation() == incarnation_;
  if (!any_ || chief.chief_term() > term_ || (same && chief.chief_term() == term_)) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat(call, ": another chief has taken the caller's place: ", "expected a term above ",
                   term_, ", found ", chief.chief_term()));
}

absl::Status ChiefAdmission::CheckNotReplaced(absl::string_view call,
                                              const v1::RequestHeader& chief) const {
  MutexLock lock(&mu_);
  return CheckTerm(call, chief);
}

absl::Status ChiefAdmission::Admit(absl::string_view call, const v1::RequestHeader& chief) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(CheckTerm(call, chief));
  const bool same = any_ && chief.incarnation() == incarnation_;
  const absl::Duration now = clock_->Monotonic();
  if (any_ && !same && now < last_call_ + exclusive_) {
    return absl::AlreadyExistsError(
        absl::StrCat(call, ": another chief was heard ", absl::FormatDuration(now - last_call_),
                     " ago; in a job without --job_token_file a second one is let in after ",
                     absl::FormatDuration(exclusive_), " of its silence, in ",
                     absl::FormatDuration(last_call_ + exclusive_ - now), " at the earliest"));
  }
  if (any_ && !same) LogInfo("obeys the chief of term ", chief.chief_term());
  last_call_ = now;
  any_ = true;
  term_ = chief.chief_term();
  incarnation_ = chief.incarnation();
  return absl::OkStatus();
}

absl::Duration ChiefAdmission::Silence() const {
  MutexLock lock(&mu_);
  return clock_->Monotonic() - last_call_;
}

uint64_t ChiefAdmission::term() const {
  MutexLock lock(&mu_);
  return term_;
}

uint64_t ChiefAdmission::incarnation() const {
  MutexLock lock(&mu_);
  return incarnation_;
}

}  // namespace keelson
