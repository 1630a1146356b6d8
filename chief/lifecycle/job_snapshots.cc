#include "chief/lifecycle/job_snapshots.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::Status JobSnapshots::RemoveUncommitted() {
  RETURN_IF_ERROR(leadership_->ConfirmDirectory());
  if (cleaned_) return absl::OkStatus();
  RETURN_IF_ERROR(directory_->RemoveStaleSnapshots());
  cleaned_ = true;
  return absl::OkStatus();
}

absl::Status JobSnapshots::Write() {
  return WriteWith([this] { return coordinator_->persistence()->LedgerState(); });
}

absl::Status JobSnapshots::WriteState(const v1::JobState& state) {
  return WriteWith([&] { return state; });
}

absl::Status JobSnapshots::WritePaused(absl::Duration step_wait) {
  if (coordinator_->control()->PauseWork(step_wait)) return Write();
  const int64_t step = coordinator_->reports()->GetStatus().step;
  // A cut would be the last one of servers that leave, and could not be written.
  if (directory_->SnapshotPrefix(step) == snapshotter_->latest_prefix()) {
    return absl::UnavailableError(
        absl::StrCat("the snapshot of step ", step, " is there, and the steps after it are under ",
                     "way still after ", absl::FormatDuration(step_wait)));
  }
  LogWarning("the snapshot lacks steps that are still under way after ",
             absl::FormatDuration(step_wait));
  return Write();
}

absl::Status JobSnapshots::WriteWith(absl::FunctionRef<v1::JobState()> take_state) {
  const CoordinatorStatus job = coordinator_->reports()->GetStatus();
  const int64_t kept_step = KeptStep(job);
  int64_t step = job.step;
  const uint64_t id = RandomId();
  absl::Status status = Prepare();
  if (status.ok()) {
    status = snapshotter_->Write(
        [&] {
          v1::JobState state = take_state();
          step = state.global_step();
          state.set_snapshot_id(id);
          return state;
        },
        [&] {
          coordinator_->evaluations()->NameSnapshot(step, id);
          return Confirm();
        },
        kept_step);
  } else {
    snapshotter_->NoteFailure(status);
  }
  if (!status.ok()) {
    LogError("the snapshot of step ", step, " failed: ", status.message());
    return status;
  }
  if (!job.diverging) good_step_ = step;
  coordinator_->evaluations()->SetSnapshotStep(step);
  leadership_->NoteSnapshot(step);
  return status;
}

int64_t JobSnapshots::KeptStep(const CoordinatorStatus& job) {
  if (!job.diverging) return kNoStep;
  if (good_step_ == kNoStep) good_step_ = job.snapshot_step;
  return good_step_;
}

absl::Status JobSnapshots::Prepare() {
  const absl::Status status = RemoveUncommitted();
  // Other errors may be mended by writing: a directory that is gone is made again.
  if (!cleaned_ || absl::IsAlreadyExists(status)) return status;
  return LookForNewest();
}

absl::Status JobSnapshots::LookForNewest() {
  if (!snapshotter_->latest_prefix().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<Snapshotter::Restored> newest, snapshotter_->FindNewest());
  if (!newest.has_value()) return absl::OkStatus();
  LogInfo("the snapshot of step ", newest->step, " is in sight again: ", newest->prefix);
  coordinator_->evaluations()->NameSnapshot(newest->step, newest->state.snapshot_id());
  return absl::OkStatus();
}

absl::Status JobSnapshots::Confirm() {
  absl::Status status;
  if (coordinator_->control()->phase() == JobPhase::kWaitingForServers) {
    status = servers_->Confirm();
  } else {
    status = servers_->PersistState(coordinator_->persistence()->PersistedState());
    coordinator_->persistence()->NoteStored(servers_->stored_version());
  }
  if (absl::IsAborted(status)) leadership_->NoteReplaced(status);
  RETURN_IF_ERROR(status);
  return leadership_->ConfirmDirectory();
}

}  // namespace keelson
