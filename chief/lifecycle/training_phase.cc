#include "chief/lifecycle/training_phase.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// How often the clock is checked while training.
constexpr absl::Duration kTrainingLook = absl::Seconds(1);

// How often it is looked, while steps are waited for, whether they can end.
constexpr absl::Duration kPauseLook = absl::Milliseconds(250);

// The pause after a shard could not be moved.
constexpr absl::Duration kMovePause = absl::Seconds(10);

constexpr char kAgainstDivergence[] =
    "lower learning_rate.base or set optimizer.clip_global_norm; keelson_ckpt rollback MODEL_DIR "
    "STEP goes back to an earlier snapshot";

absl::Status LossNotFinite(int64_t step) {
  return absl::InvalidArgumentError(
      absl::StrCat("the training loss is not finite near step ", step, "; ", kAgainstDivergence));
}

absl::Status Diverged(int64_t step, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("training has diverged near step ", step, ": ", why, "; ", kAgainstDivergence));
}

void LogEarlyEnd(const CoordinatorStatus& job) {
  if (job.end_reason.empty() || (job.max_steps > 0 && job.step >= job.max_steps)) return;
  const std::string of = job.max_steps > 0 ? absl::StrCat(" of ", job.max_steps) : "";
  LogInfo("training has ended early at step ", job.step, of, ": ", job.end_reason);
}

}  // namespace

absl::Status TrainingPhase::Run(absl::Duration saved_at) {
  coordinator_->wishes()->Open();
  absl::Status status = Train(saved_at);
  coordinator_->wishes()->Close(
      status.ok()
          ? absl::FailedPreconditionError(
                "snapshot: the job does not train any more; it writes its last one by itself")
          : absl::UnavailableError(absl::StrCat("snapshot: ", status.message())));
  return status;
}

absl::Status TrainingPhase::Train(absl::Duration saved_at) {
  SaveSchedule schedule(options_.saves, coordinator_->reports()->GetStatus().snapshot_step,
                        saved_at);
  while (true) {
    const absl::Duration now = clock_->Monotonic();
    const int64_t step = coordinator_->control()->WaitForSteps(schedule.AwaitedStep(now),
                                                               now + kTrainingLook, *stop_);
    const CoordinatorStatus job = coordinator_->reports()->GetStatus();
    RETURN_IF_ERROR(Check(job));
    if (job.trained) {
      LogEarlyEnd(job);
      return absl::OkStatus();
    }
    const std::vector<ServerView> leaving = LeavingServers(MoveShards());
    const bool wanted = coordinator_->wishes()->Begin();
    if (leaving.empty() && !wanted && !schedule.Due(step, clock_->Monotonic())) continue;
    const absl::Status saved = leaving.empty() ? Save(job) : SaveLeavingServers(leaving);
    if (wanted) TellOfSnapshot(saved);
    if (saved.ok()) {
      schedule.NoteSaved(coordinator_->reports()->GetStatus().snapshot_step, clock_->Monotonic());
    } else {
      schedule.NoteFailed(clock_->Monotonic());
    }
  }
}

absl::Status TrainingPhase::Check(const CoordinatorStatus& job) {
  if (job.totals.non_finite_losses() > 0) return LossNotFinite(job.step);
  if (!job.diverged.empty()) return Diverged(job.step, job.diverged);
  RETURN_IF_ERROR(stream_->status());
  NoteDiverging(job);
  if (!stop_->raised()) return absl::OkStatus();
  if (leadership_->Check().ok())
    snapshots_->WritePaused(options_.step_wait).IgnoreError();  // logged
  return absl::CancelledError(
      absl::StrCat("by a signal at step ", coordinator_->reports()->GetStatus().step));
}

absl::Status TrainingPhase::Save(const CoordinatorStatus& job) {
  if (job.snapshot_step == job.step) return absl::OkStatus();
  return snapshots_->Write();
}

void TrainingPhase::TellOfSnapshot(const absl::Status& saved) {
  if (saved.ok()) {
    coordinator_->wishes()->End(coordinator_->reports()->GetStatus().snapshot_step);
  } else {
    coordinator_->wishes()->End(
        absl::UnavailableError(absl::StrCat("snapshot: ", saved.message())));
  }
}

std::vector<ServerView> TrainingPhase::LeavingServers(const std::set<size_t>& due) const {
  std::vector<ServerView> leaving = servers_->States();
  std::erase_if(leaving, [&](const ServerView& server) {
    const auto s = static_cast<size_t>(server.task.index);
    // It has been heard of since.
    const bool moves_next = servers_->MayMove(s) && !due.contains(s);
    return !server.leaving || moves_next || saved_servers_.contains(server.incarnation);
  });
  return leaving;
}

std::set<size_t> TrainingPhase::DueMoves() const {
  std::set<size_t> due;
  for (const ServerView& server : servers_->States()) {
    // A snapshot that has all of the shard does not keep its host here.
    const bool leaves =
        server.leaving || (server.asked_to_stop && server.kind == ServerView::kAlive);
    const auto s = static_cast<size_t>(server.task.index);
    const bool saved = saved_servers_.contains(server.incarnation);
    if (leaves && !saved && servers_->MayMove(s)) due.insert(s);
  }
  if (clock_->Monotonic() < homecoming_due_) return due;
  for (size_t s = 0; s < servers_->size(); ++s) {
    if (servers_->MayGoHome(s)) due.insert(s);
  }
  return due;
}

bool TrainingPhase::AnyClosed(const std::set<size_t>& shards) const {
  const std::vector<ServerView> states = servers_->States();
  return std::any_of(shards.begin(), shards.end(),
                     [&states](size_t s) { return states[s].asked_to_stop && !states[s].leaving; });
}

bool TrainingPhase::PauseWorkFor(const std::set<size_t>& due) {
  const absl::Duration until = clock_->Monotonic() + options_.step_wait;
  while (true) {
    const absl::Duration rest = AnyClosed(due) ? absl::ZeroDuration() : until - clock_->Monotonic();
    if (coordinator_->control()->PauseWork(std::min(rest, kPauseLook))) return true;
    if (rest <= kPauseLook) return false;
  }
}

std::set<size_t> TrainingPhase::MoveShards() {
  std::set<size_t> due = DueMoves();
  if (due.empty()) return due;
  const bool idle = PauseWorkFor(due);
  // Nothing asynchronous is handed out before ResumeWork, whatever the mode becomes.
  const uint64_t sync_period = coordinator_->control()->sync_period();
  for (const size_t s : due) {
    servers_->ForgetOldReplica(s, sync_period);
    // A host that leaves applies nothing after the copy; another one might.
    const bool goes_home = servers_->MayGoHome(s);
    absl::Status moved = absl::UnavailableError("steps are still under way");
    if (idle || !goes_home) moved = servers_->HandOver(s, coordinator_->roster()->MemberList());
    if (moved.ok()) continue;
    LogWarning(servers_->name(s), " stays where it is: ", moved.message());
    if (goes_home) homecoming_due_ = clock_->Monotonic() + kMovePause;
  }
  coordinator_->shards()->Set(servers_->Addresses());
  coordinator_->control()->ResumeWork();
  return due;
}

absl::Status TrainingPhase::SaveLeavingServers(const std::vector<ServerView>& leaving) {
  const auto add_name = [](std::string* out, const ServerView& server) {
    out->append(server.name());
  };
  LogInfo("asked to stop: ", absl::StrJoin(leaving, ", ", add_name),
          "; nothing is handed out until a snapshot has what is there");
  const absl::Status status = snapshots_->WritePaused(options_.step_wait);
  if (status.ok()) {
    for (const ServerView& server : leaving) saved_servers_.insert(server.incarnation);
  }
  coordinator_->control()->ResumeWork();
  return status;
}

void TrainingPhase::NoteDiverging(const CoordinatorStatus& job) {
  if (job.diverging == diverging_) return;
  diverging_ = job.diverging;
  if (diverging_) {
    LogWarning("training may be diverging: the mean loss of the newest steps is ", job.recent_loss,
               " near step ", job.step, ", that of the first steps was ", job.first_loss,
               "; the snapshot of step ", job.snapshot_step, " is kept");
  } else {
    LogInfo("the loss has recovered: ", job.recent_loss, " near step ", job.step);
  }
}

}  // namespace keelson
