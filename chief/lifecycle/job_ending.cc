#include "chief/lifecycle/job_ending.h"

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cluster/task.h"

namespace keelson {
namespace {

// The chief no longer waits for an expected evaluator that is absent for this long after training.
constexpr absl::Duration kEvaluatorAbsence = absl::Seconds(30);

}  // namespace

absl::Status JobEnding::Run(const std::optional<DoneMarker>& before) {
  coordinator_->control()->SetPhase(JobPhase::kFinishing);
  const int64_t step = coordinator_->reports()->GetStatus().step;
  if (coordinator_->reports()->GetStatus().snapshot_step < step ||
      snapshotter_->latest_prefix().empty()) {
    RETURN_IF_ERROR(TryUntilStopped([this] { return snapshots_->Write(); }));
  }
  coordinator_->control()->SetPhase(JobPhase::kEvaluating);
  const DoneMarker now = {step, options_.config_hash};
  if (before == now) {
    LogInfo("nothing was left to train: the job is done since an earlier run");
  } else {
    AwaitFinalEvaluation(step);
  }
  if (stop_->raised()) return absl::CancelledError("by a signal before the final evaluation");
  RETURN_IF_ERROR(TryUntilStopped([&] {
    absl::Status status = leadership_->ConfirmDirectory();
    if (status.ok()) status = directory_->WriteDoneMarker(now.step, now.config_hash);
    if (!status.ok()) LogError("the DONE marker: ", status.message());
    return status;
  }));
  coordinator_->control()->SetPhase(JobPhase::kDone);
  // From here on a server that does not answer has ended as it should.
  supervisor_->Stop();
  servers_->Finish();
  if (!coordinator_->roster()->WaitUntilAlone(options_.leave_wait))
    LogWarning("some members did not deregister");
  LogInfo("done: step ", step, ", model ", snapshotter_->latest_prefix());
  return absl::OkStatus();
}

absl::Status JobEnding::TryUntilStopped(absl::FunctionRef<absl::Status()> call) {
  RetryPause pause = options_.retry;
  while (true) {
    const absl::Status status = call();
    if (status.ok()) return status;
    if (stop_->WaitFor(pause.Next())) {
      return absl::CancelledError(absl::StrCat(
          "by a signal, before the end of the job could be written: ", status.message()));
    }
  }
}

void JobEnding::AwaitFinalEvaluation(int64_t step) {
  if (!options_.expects_evaluator && !coordinator_->roster()->AnyAlive(Role::kEvaluator)) return;
  const absl::Duration start = clock_->Monotonic();
  absl::Duration heard = start;
  while (!coordinator_->evaluations()->WaitForEvaluation(step, absl::Seconds(1), *stop_)) {
    const absl::Duration now = clock_->Monotonic();
    if (coordinator_->roster()->AnyAlive(Role::kEvaluator)) heard = now;
    if (stop_->raised()) return;
    if (now - start >= options_.evaluation_timeout || now - heard >= kEvaluatorAbsence) {
      LogWarning("the evaluator has not scored step ", step, " within ",
                 absl::FormatDuration(now - start), ", ending without it");
      return;
    }
  }
}

}  // namespace keelson
