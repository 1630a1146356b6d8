#include "chief/coordination/snapshot_wishes.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

absl::Status DoesNotTrain() {
  return absl::FailedPreconditionError(
      "snapshot: the job does not train; it writes its last one by itself");
}

}  // namespace

absl::StatusOr<int64_t> SnapshotWishes::Save(absl::Duration timeout) {
  MutexLock lock(&state_->mu);
  if (!state_->training.has_value() || state_->phase != JobPhase::kTraining || state_->Trained()) {
    return DoesNotTrain();
  }
  const uint64_t number = state_->saves.Add();
  state_->changed.NotifyAll();
  const absl::Duration until = state_->clock->Monotonic() + timeout;
  std::optional<absl::StatusOr<int64_t>> answer = state_->saves.AnswerTo(number);
  while (!answer.has_value()) {
    if (state_->clock->Monotonic() >= until) {
      return absl::UnavailableError(
          absl::StrCat("snapshot: not written within ", absl::FormatDuration(timeout)));
    }
    if (state_->phase != JobPhase::kTraining) return DoesNotTrain();
    state_->WaitUntil(until);
    answer = state_->saves.AnswerTo(number);
  }
  return *answer;
}

void SnapshotWishes::Open() {
  MutexLock lock(&state_->mu);
  state_->saves.Open();
}

void SnapshotWishes::Close(const absl::Status& why) {
  MutexLock lock(&state_->mu);
  state_->saves.Close(why);
  state_->changed.NotifyAll();
}

bool SnapshotWishes::Begin() {
  MutexLock lock(&state_->mu);
  const bool wanted = state_->saves.waiting();
  state_->saves.Begin();
  return wanted;
}

void SnapshotWishes::End(const absl::StatusOr<int64_t>& outcome) {
  MutexLock lock(&state_->mu);
  state_->saves.End(outcome);
  state_->changed.NotifyAll();
}

}  // namespace keelson
