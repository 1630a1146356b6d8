#include "chief/lifecycle/training_phase.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// How often the clock is checked while training.
constexpr absl::Duration kTrainingLook = absl::Seconds(1);

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
    const std::vector<ServerView> leaving = LeavingServers();
    if (leaving.empty() && !schedule.Due(step, clock_->Monotonic())) continue;
    const absl::Status saved = leaving.empty() ? snapshots_->Write() : SaveLeavingServers(leaving);
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

std::vector<ServerView> TrainingPhase::LeavingServers() const {
  std::vector<ServerView> leaving = servers_->States();
  std::erase_if(leaving, [this](const ServerView& server) {
    return !server.leaving || saved_servers_.contains(server.incarnation);
  });
  return leaving;
}

absl::Status TrainingPhase::SaveLeavingServers(const std::vector<ServerView>& leaving) {
  const auto add_name = [](std::string* out, const ServerView& server) {
    out->append(server.task.ToString());
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
