#include "chief/proposal/proposal_refusal.h"

#include "absl/strings/str_cat.h"

namespace keelson {

absl::Status ProposalRefusal::Propose(const v1::ProposeJobRequest& request) {
  MutexLock lock(&mu_);
  told_.insert(request.proposal_id());
  told_now_.NotifyAll();
  return absl::FailedPreconditionError(absl::StrCat("the chief has given up: ", reason_));
}

bool ProposalRefusal::AwaitTold(size_t scripts, absl::Duration patience) {
  const absl::Duration until = clock_->Monotonic() + patience;
  MutexLock lock(&mu_);
  while (told_.size() < scripts) {
    if (clock_->Monotonic() >= until) return false;
    clock_->WaitUntil(&mu_, &told_now_, until);
  }
  return true;
}

}  // namespace keelson
