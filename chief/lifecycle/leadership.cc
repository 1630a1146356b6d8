#include "chief/lifecycle/leadership.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {

void Leadership::NoteReplaced(const absl::Status& status) {
  {
    MutexLock lock(&mu_);
    if (!replaced_.ok()) return;
    replaced_ = absl::AlreadyExistsError(
        absl::StrCat("another chief has taken this one's place: ", status.message()));
  }
  stop_->Raise();
}

absl::Status Leadership::Check() const {
  if (owner_ != nullptr) RETURN_IF_ERROR(owner_->lost());
  MutexLock lock(&mu_);
  return replaced_;
}

absl::Status Leadership::ConfirmDirectory() {
  return owner_ == nullptr ? absl::OkStatus() : owner_->Confirm();
}

bool Leadership::may_report() const { return owner_ == nullptr || owner_->in_force(); }

bool Leadership::is_heir() const { return owner_ != nullptr && owner_->heir(); }

int64_t Leadership::snapshot_step() const {
  return owner_ == nullptr ? 0 : owner_->snapshot_step();
}

void Leadership::NoteSnapshot(int64_t step) {
  if (owner_ != nullptr) owner_->NoteSnapshot(step);
}

absl::Status Leadership::NoteConfigInUse() {
  if (owner_ == nullptr) return absl::OkStatus();
  owner_->NoteConfigInUse();
  const absl::Status status = owner_->Confirm();
  return absl::IsAlreadyExists(status) ? status : absl::OkStatus();
}

}  // namespace keelson
