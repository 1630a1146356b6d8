#include "chief/chief.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

constexpr absl::Duration kHousePause = absl::Milliseconds(100);
constexpr absl::Duration kSupervisePause = absl::Seconds(1);
// How long members get to hear of the end before the chief's server goes.
constexpr absl::Duration kFarewell = absl::Seconds(3);
// An evaluator that is expected, but absent for so long after training, is given up.
constexpr absl::Duration kEvaluatorAbsence = absl::Seconds(30);
// While training, the clock is looked at this often.
constexpr absl::Duration kTrainingLook = absl::Seconds(1);

int64_t MaxSteps(const ChiefOptions& options) {
  const v1::TrainingConfig& train = options.config.train();
  if (train.max_steps() > 0) return train.max_steps();
  return WorkLedger::StepsFor(train.epochs(), options.train_records, train.batch_size());
}

Coordinator::Options CoordinatorOptions(const ChiefOptions& options) {
  Coordinator::Options out;
  out.config_hash = options.config_hash;
  out.lease = options.lease;
  out.loss_interval = options.config.train().summary_steps();
  return out;
}

ServerGroup::Options ServerGroupOptions(const ChiefOptions& options) {
  ServerGroup::Options out;
  out.header.mutable_task()->set_role(v1::ROLE_CHIEF);
  out.header.set_incarnation(options.incarnation);
  out.config_hash = options.config_hash;
  out.chief_address = options.address;
  out.startup_timeout = options.startup_timeout;
  return out;
}

std::vector<std::string> AddressesOf(const std::vector<ServerGroup::Server>& servers) {
  std::vector<std::string> addresses;
  for (const ServerGroup::Server& server : servers) addresses.push_back(server.address);
  return addresses;
}

absl::Status LossNotFinite(int64_t step) {
  return absl::InvalidArgumentError(
      absl::StrCat("the training loss is not finite near step ", step,
                   "; lower learning_rate.base or set optimizer.clip_global_norm"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Create(ChiefOptions options,
                                                     std::vector<ServerGroup::Server> servers,
                                                     const Clock* clock, const StopSignal* stop) {
  RETURN_IF_ERROR(RequireModelDir(options.config));
  const std::string model_dir = options.config.checkpoint().model_dir();
  RETURN_IF_ERROR(CreateDirectories(model_dir));
  const int64_t max_steps = MaxSteps(options);
  ASSIGN_OR_RETURN(LearningRateSchedule learning_rate,
                   LearningRateSchedule::Create(options.config.learning_rate(), max_steps));
  std::unique_ptr<Chief> chief(
      new Chief(std::move(options), std::move(servers), max_steps, clock, stop));
  ASSIGN_OR_RETURN(chief->reporter_,
                   Reporter::Create({model_dir, std::move(learning_rate),
                                     [servers = &chief->servers_] { return servers->Missing(); }},
                                    clock, &chief->coordinator_));
  return chief;
}

Chief::Chief(ChiefOptions options, std::vector<ServerGroup::Server> servers, int64_t max_steps,
             const Clock* clock, const StopSignal* stop)
    : options_(std::move(options)),
      max_steps_(max_steps),
      ps_addresses_(AddressesOf(servers)),
      clock_(clock),
      stop_(stop),
      directory_(options_.config.checkpoint().model_dir(), clock),
      coordinator_(CoordinatorOptions(options_), clock),
      handler_(&coordinator_),
      servers_(ServerGroupOptions(options_), std::move(servers), clock, stop),
      snapshotter_(&directory_, &servers_,
                   {options_.config.checkpoint().keep_max(),
                    options_.config.checkpoint().keep_every_n_hours()},
                   clock) {}

absl::Status Chief::Run() {
  // Before this process writes anything there itself.
  RETURN_IF_ERROR(directory_.RemoveStaleFiles());
  std::thread house([this] { KeepHouse(); });
  const absl::Status status = RunJob();
  if (!status.ok() && status.code() != absl::StatusCode::kCancelled) {
    coordinator_.Fail(status);
    coordinator_.WaitUntilAlone(kFarewell);
  }
  helpers_stop_.Raise();
  house.join();
  reporter_->Finish();
  return status;
}

absl::Status Chief::RunJob() {
  RETURN_IF_ERROR(directory_.RemoveDoneMarker());
  LogInfo("waiting for ", servers_.size(), " parameter servers");
  RETURN_IF_ERROR(servers_.WaitUntilReachable());
  RETURN_IF_ERROR(StartOrRestore());
  std::thread supervisor([this] { SuperviseServers(); });
  absl::Status status = Train();
  if (status.ok()) status = FinishJob();
  helpers_stop_.Raise();
  supervisor.join();
  return status;
}

absl::Status Chief::StartOrRestore() {
  const Placement placement = Placement::Compute(options_.variables, servers_.size());
  LogInfo("placement:");
  std::printf("%s", placement.ToTable().c_str());
  std::fflush(stdout);
  const WorkOptions work = {max_steps_, options_.train_records,
                            options_.config.train().batch_size(), options_.incarnation | 1};
  v1::InitializeShardRequest request = InitializeRequest(placement);
  ASSIGN_OR_RETURN(const Snapshotter::Restored restored,
                   snapshotter_.RestoreLatest([&](const Snapshotter::Restored& candidate) {
                     RETURN_IF_ERROR(WorkLedger::FromState(candidate.state, work).status());
                     request.set_restore_prefix(candidate.prefix);
                     return servers_.Initialize(request);
                   }));
  if (restored.prefix.empty()) {
    request.clear_restore_prefix();
    RETURN_IF_ERROR(servers_.Initialize(request));
  }
  ASSIGN_OR_RETURN(WorkLedger ledger, WorkLedger::FromState(restored.state, work));
  const int64_t step = ledger.completed_steps();
  LogInfo(restored.prefix.empty() ? "training from the start"
                                  : absl::StrCat("continuing from ", restored.prefix),
          ": step ", step, " of ", max_steps_, ", ", options_.train_records, " records");
  coordinator_.SetSnapshotStep(step);
  if (restored.prefix.empty()) {
    // Before the first push, so that it holds the initial values and no steps.
    v1::JobState state = ledger.ToState();
    state.set_config_hash(options_.config_hash);
    RETURN_IF_ERROR(WriteSnapshot(state));
  }
  coordinator_.StartTraining({placement, ps_addresses_}, std::move(ledger));
  return absl::OkStatus();
}

v1::InitializeShardRequest Chief::InitializeRequest(const Placement& placement) const {
  v1::InitializeShardRequest request;
  *request.mutable_placement() = placement.ToProto();
  request.set_placement_fingerprint(placement.Fingerprint());
  *request.mutable_optimizer() = options_.config.optimizer();
  *request.mutable_learning_rate() = options_.config.learning_rate();
  request.set_max_steps(max_steps_);
  request.set_seed(options_.config.train().seed());
  request.set_reject_non_finite(options_.config.transfer().reject_non_finite());
  return request;
}

int64_t Chief::NextSaveStep(int64_t saved_step) const {
  const int64_t save_steps = options_.config.checkpoint().save_steps();
  return save_steps > 0 ? std::min(max_steps_, saved_step + save_steps) : max_steps_;
}

bool Chief::SaveDue(int64_t step, int64_t saved_step, absl::Duration saved_at) const {
  const v1::CheckpointConfig& checkpoint = options_.config.checkpoint();
  if (step == saved_step) return false;
  if (checkpoint.save_steps() > 0) return step >= NextSaveStep(saved_step);
  return clock_->Monotonic() >= saved_at + absl::Seconds(checkpoint.save_seconds());
}

absl::Status Chief::Train() {
  int64_t saved_step = coordinator_.GetStatus().snapshot_step;
  absl::Duration saved_at = clock_->Monotonic();
  absl::Duration not_before = saved_at;
  while (true) {
    const absl::Duration now = clock_->Monotonic();
    const int64_t target = now < not_before ? max_steps_ : NextSaveStep(saved_step);
    const int64_t step = coordinator_.WaitForSteps(target, now + kTrainingLook, *stop_);
    if (coordinator_.GetStatus().totals.non_finite_losses > 0) return LossNotFinite(step);
    if (stop_->raised()) {
      WriteSnapshot(coordinator_.LedgerState()).IgnoreError();  // logged
      return absl::CancelledError(absl::StrCat("by a signal at step ", step));
    }
    if (step >= max_steps_) return absl::OkStatus();
    if (clock_->Monotonic() < not_before || !SaveDue(step, saved_step, saved_at)) continue;
    if (WriteSnapshot(coordinator_.LedgerState()).ok()) {
      saved_step = coordinator_.GetStatus().snapshot_step;
      saved_at = clock_->Monotonic();
    } else {
      not_before = clock_->Monotonic() + options_.snapshot_retry;
    }
  }
}

absl::Status Chief::WriteSnapshot(const v1::JobState& state) {
  const absl::Status status = snapshotter_.Write(state);
  if (status.ok()) {
    coordinator_.SetSnapshotStep(state.global_step());
  } else {
    LogError("the snapshot of step ", state.global_step(), " failed: ", status.message());
  }
  return status;
}

absl::Status Chief::FinishJob() {
  coordinator_.SetPhase(JobPhase::kFinishing);
  const int64_t step = coordinator_.GetStatus().step;
  if (coordinator_.GetStatus().snapshot_step < step || snapshotter_.latest_prefix().empty()) {
    // The result of the whole job: worth several tries.
    absl::Status status = WriteSnapshot(coordinator_.LedgerState());
    for (int i = 0; i < 3 && !status.ok() && !stop_->WaitFor(options_.snapshot_retry); ++i) {
      status = WriteSnapshot(coordinator_.LedgerState());
    }
    RETURN_IF_ERROR(status);
  }
  coordinator_.SetPhase(JobPhase::kEvaluating);
  AwaitFinalEvaluation(step);
  if (stop_->raised()) return absl::CancelledError("by a signal before the final evaluation");
  RETURN_IF_ERROR(directory_.WriteDoneMarker(step, options_.config_hash));
  coordinator_.SetPhase(JobPhase::kDone);
  servers_.Finish();
  if (!coordinator_.WaitUntilAlone(kFarewell)) LogWarning("some members did not say good-bye");
  LogInfo("done: step ", step, ", model ", snapshotter_.latest_prefix());
  return absl::OkStatus();
}

void Chief::AwaitFinalEvaluation(int64_t step) {
  if (!options_.expects_evaluator && !coordinator_.AnyAlive(Role::kEvaluator)) return;
  const absl::Duration start = clock_->Monotonic();
  const absl::Duration timeout =
      absl::Seconds(options_.config.evaluation().final_timeout_seconds());
  absl::Duration heard = start;
  while (!coordinator_.WaitForEvaluation(step, absl::Seconds(1), *stop_)) {
    const absl::Duration now = clock_->Monotonic();
    if (coordinator_.AnyAlive(Role::kEvaluator)) heard = now;
    if (stop_->raised()) return;
    if (now - start >= timeout || now - heard >= kEvaluatorAbsence) {
      LogWarning("the evaluator has not scored step ", step, " within ",
                 absl::FormatDuration(now - start), ", ending without it");
      return;
    }
  }
}

void Chief::KeepHouse() {
  do {
    coordinator_.ExpireLeases();
    reporter_->Update();
  } while (!helpers_stop_.WaitFor(kHousePause));
}

void Chief::SuperviseServers() {
  while (!helpers_stop_.WaitFor(kSupervisePause)) {
    // Once done, a server that does not answer has simply ended.
    if (coordinator_.phase() == JobPhase::kDone) return;
    servers_.Supervise(snapshotter_.latest_prefix());
  }
}

}  // namespace keelson
