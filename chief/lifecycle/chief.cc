#include "chief/lifecycle/chief.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/lifecycle/save_schedule.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

constexpr absl::Duration kReportPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestSnapshotRetry = absl::Minutes(1);
// How long members have to learn that the job has ended before the chief's server stops.
constexpr absl::Duration kLongestLeaveWait = absl::Seconds(3);
// The chief no longer waits for an expected evaluator that is absent for this long after training.
constexpr absl::Duration kEvaluatorAbsence = absl::Seconds(30);
// How often the clock is checked while training.
constexpr absl::Duration kTrainingLook = absl::Seconds(1);

// A synchronous step takes several batches.
int64_t BatchesPerStep(const v1::TrainConfig& config) {
  const v1::ConsistencyMode& mode = config.consistency().mode();
  return mode.has_synchronous() ? mode.synchronous().replicas_to_aggregate() : 1;
}

int64_t MaxSteps(const ChiefOptions& options) {
  const v1::TrainingConfig& train = options.config.train();
  if (train.max_steps() > 0) return train.max_steps();
  return WorkPool::StepsFor(train.epochs(), options.train_records,
                            train.batch_size() * BatchesPerStep(options.config));
}

Coordinator::Options CoordinatorOptions(const ChiefOptions& options, const ConsistencyMode& mode) {
  Coordinator::Options out;
  out.mode = mode;
  out.config_hash = options.config_hash;
  out.lease = options.lease;
  out.loss_interval = options.config.train().summary_steps();
  out.max_loss = options.config.train().max_loss();
  return out;
}

ServerGroup::Options ServerGroupOptions(const ChiefOptions& options) {
  ServerGroup::Options out;
  out.header.mutable_task()->set_role(v1::ROLE_CHIEF);
  out.header.set_incarnation(options.incarnation);
  if (options.owner != nullptr) {
    out.header.set_chief_term(options.owner->term());
    out.raise_term = [owner = options.owner](uint64_t known) { return owner->RaiseTerm(known); };
  }
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

std::unique_ptr<ShardStorage> MakeStorage(const ChiefOptions& options,
                                          const CheckpointDirectory* directory) {
  if (options.checkpoint_writer == CheckpointWriter::kServers) {
    return std::make_unique<ServerStorage>();
  }
  return std::make_unique<ChiefStorage>(directory);
}

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

void LogEarlyEnd(const Coordinator::Status& job) {
  if (job.step >= job.max_steps) return;
  LogInfo("training has ended early at step ", job.step, " of ", job.max_steps, ": ",
          job.end_reason);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Create(ChiefOptions options,
                                                     std::vector<ServerGroup::Server> servers,
                                                     const Clock* clock, StopSignal* stop) {
  RETURN_IF_ERROR(RequireModelDir(options.config));
  const std::string model_dir = options.config.checkpoint().model_dir();
  const absl::Status created = options.file_system->CreateDirectories(model_dir);
  if (!created.ok()) {
    return absl::Status(created.code(),
                        absl::StrCat("checkpoint.model_dir ", model_dir, ": ", created.message()));
  }
  const int64_t max_steps = MaxSteps(options);
  ASSIGN_OR_RETURN(LearningRateSchedule learning_rate,
                   LearningRateSchedule::Create(options.config.learning_rate(), max_steps));
  ASSIGN_OR_RETURN(
      const ConsistencyMode mode,
      ConsistencyMode::FromProto(options.config.consistency().mode(), "consistency.mode"));
  std::unique_ptr<Chief> chief(
      new Chief(std::move(options), std::move(servers), max_steps, mode, clock, stop));
  chief->reporter_ =
      Reporter::Create(chief->ReporterOptions(learning_rate), clock, &chief->coordinator_);
  return chief;
}

Chief::Chief(ChiefOptions options, std::vector<ServerGroup::Server> servers, int64_t max_steps,
             const ConsistencyMode& mode, const Clock* clock, StopSignal* stop)
    : options_(std::move(options)),
      max_steps_(max_steps),
      mode_(mode),
      ps_addresses_(AddressesOf(servers)),
      clock_(clock),
      stop_(stop),
      leadership_(options_.owner.get(), &stop_),
      directory_(options_.file_system, options_.config.checkpoint().model_dir(), clock),
      storage_(MakeStorage(options_, &directory_)),
      coordinator_(CoordinatorOptions(options_, mode), clock),
      handler_(&coordinator_, [this] { return servers_.States(); }),
      servers_(ServerGroupOptions(options_), std::move(servers), storage_.get(), clock, &stop_),
      snapshotter_(&directory_, &servers_,
                   {options_.config.checkpoint().keep_max(),
                    options_.config.checkpoint().keep_every_n_hours()},
                   clock),
      snapshots_(&directory_, &snapshotter_, &servers_, &coordinator_, &leadership_),
      leases_({options_.lease, options_.leave_within}, &coordinator_, &servers_, Clock::Real(),
              &stop_),
      rounds_(&coordinator_, &servers_, &leadership_, clock),
      announcer_(&coordinator_, &servers_, clock, [this] { supervisor_.PersistNow(); }),
      supervisor_(&servers_, SupervisedJob(), clock, options_.supervision) {}

ServerSupervisor::Job Chief::SupervisedJob() {
  return {[this] { return coordinator_.PersistedState(); },
          [this] { return coordinator_.MemberList(); },
          [this] { return coordinator_.member_epoch(); },
          [this](uint64_t version) { coordinator_.NoteStored(version); },
          [this] { return snapshotter_.Snapshots(); },
          [this](const absl::Status& status) { leadership_.NoteReplaced(status); },
          [this](int64_t round) { coordinator_.NoteForeignCommit(round); },
          [this](uint64_t epoch) { announcer_.HandOnTold(epoch); }};
}

Reporter::Options Chief::ReporterOptions(const LearningRateSchedule& learning_rate) {
  Reporter::Options out = {options_.config.checkpoint().model_dir(), learning_rate};
  out.missing_servers = [this] { return servers_.Missing(); };
  out.snapshots = [this] { return snapshotter_.figures(); };
  out.servers = [this] { return servers_.States(); };
  out.chief.task = options_.self;
  out.chief.peer = options_.peer;
  out.expected_members = options_.expected_members;
  const int64_t batch = options_.config.train().batch_size() * BatchesPerStep(options_.config);
  out.steps_per_epoch = static_cast<double>(options_.train_records) / static_cast<double>(batch);
  out.file_system = options_.file_system;
  return out;
}

absl::Status Chief::Run() {
  // Before this process writes files of its own; they are removed once it leads.
  leftovers_ = directory_.ListTemporaries().value_or(std::vector<std::string>());
  Thread leases([this] { leases_.Run(helpers_stop_); });
  Thread reports([this] { RunReports(); });
  absl::Status status = RunJob();
  if (status.code() == absl::StatusCode::kAborted) leadership_.NoteReplaced(status);
  // The other error is a consequence of the replacement.
  if (!leadership_.Check().ok()) status = leadership_.Check();
  // An error that a restart of the chief mends does not end the members.
  const bool fatal = !status.ok() && status.code() != absl::StatusCode::kUnavailable &&
                     status.code() != absl::StatusCode::kCancelled && leadership_.Check().ok();
  if (fatal) {
    coordinator_.Fail(status);
    coordinator_.WaitUntilAlone(kLongestLeaveWait);
  }
  helpers_stop_.Raise();
  leases.Join();
  reports.Join();
  if (leadership_.may_report()) reporter_->Finish();
  return status;
}

absl::Status Chief::RunJob() {
  RETURN_IF_ERROR(directory_.RemoveDoneMarker());
  const Placement placement = Placement::Compute(options_.variables, servers_.size());
  servers_.Describe(ShardsOf(placement));
  LogInfo("waiting for ", servers_.size(), " parameter servers");
  RETURN_IF_ERROR(servers_.WaitUntilReachable());
  RETURN_IF_ERROR(StartOrAdopt(placement));
  supervisor_.Start();
  if (leadership_.may_report()) {
    const absl::Status cleaned = directory_.RemoveStaleFiles(leftovers_);
    if (!cleaned.ok()) LogWarning("files of a predecessor stay: ", cleaned.message());
  }
  Thread announcements([this] { announcer_.Run(helpers_stop_); });
  Thread rounds([this] { rounds_.Run(helpers_stop_); });
  absl::Status status = Train();
  if (status.ok()) status = FinishJob();
  helpers_stop_.Raise();
  announcements.Join();
  rounds.Join();
  supervisor_.Stop();
  return status;
}

absl::Status Chief::Train() {
  SaveSchedule::Options saves;
  saves.max_steps = max_steps_;
  saves.save_steps = options_.config.checkpoint().save_steps();
  saves.interval = absl::Seconds(options_.config.checkpoint().save_seconds());
  saves.retry = RetryPause(options_.snapshot_retry, kLongestSnapshotRetry);
  SaveSchedule schedule(saves, coordinator_.GetStatus().snapshot_step, saved_at_);
  while (true) {
    const absl::Duration now = clock_->Monotonic();
    const int64_t step =
        coordinator_.WaitForSteps(schedule.AwaitedStep(now), now + kTrainingLook, stop_);
    const Coordinator::Status job = coordinator_.GetStatus();
    RETURN_IF_ERROR(CheckTraining(job));
    if (job.trained) {
      LogEarlyEnd(job);
      return absl::OkStatus();
    }
    const std::vector<ServerView> leaving = LeavingServers();
    if (leaving.empty() && !schedule.Due(step, clock_->Monotonic())) continue;
    const absl::Status saved = leaving.empty() ? snapshots_.Write() : SaveLeavingServers(leaving);
    if (saved.ok()) {
      schedule.NoteSaved(coordinator_.GetStatus().snapshot_step, clock_->Monotonic());
    } else {
      schedule.NoteFailed(clock_->Monotonic());
    }
  }
}

absl::Status Chief::CheckTraining(const Coordinator::Status& job) {
  if (job.totals.non_finite_losses() > 0) return LossNotFinite(job.step);
  if (!job.diverged.empty()) return Diverged(job.step, job.diverged);
  NoteDiverging(job);
  if (!stop_.raised()) return absl::OkStatus();
  if (leadership_.Check().ok()) snapshots_.WritePaused(options_.step_wait).IgnoreError();  // logged
  return absl::CancelledError(absl::StrCat("by a signal at step ", coordinator_.GetStatus().step));
}

std::vector<ServerView> Chief::LeavingServers() const {
  std::vector<ServerView> leaving = servers_.States();
  std::erase_if(leaving, [this](const ServerView& server) {
    return !server.leaving || saved_servers_.contains(server.incarnation);
  });
  return leaving;
}

absl::Status Chief::SaveLeavingServers(const std::vector<ServerView>& leaving) {
  const auto add_name = [](std::string* out, const ServerView& server) {
    out->append(server.task.ToString());
  };
  LogInfo("asked to stop: ", absl::StrJoin(leaving, ", ", add_name),
          "; nothing is handed out until a snapshot has what is there");
  const absl::Status status = snapshots_.WritePaused(options_.step_wait);
  if (status.ok()) {
    for (const ServerView& server : leaving) saved_servers_.insert(server.incarnation);
  }
  coordinator_.ResumeWork();
  return status;
}

void Chief::NoteDiverging(const Coordinator::Status& job) {
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

absl::Status Chief::FinishJob() {
  coordinator_.SetPhase(JobPhase::kFinishing);
  const int64_t step = coordinator_.GetStatus().step;
  if (coordinator_.GetStatus().snapshot_step < step || snapshotter_.latest_prefix().empty()) {
    RETURN_IF_ERROR(TryUntilStopped([this] { return snapshots_.Write(); }));
  }
  coordinator_.SetPhase(JobPhase::kEvaluating);
  AwaitFinalEvaluation(step);
  if (stop_.raised()) return absl::CancelledError("by a signal before the final evaluation");
  RETURN_IF_ERROR(TryUntilStopped([&] {
    absl::Status status = leadership_.ConfirmDirectory();
    if (status.ok()) status = directory_.WriteDoneMarker(step, options_.config_hash);
    if (!status.ok()) LogError("the DONE marker: ", status.message());
    return status;
  }));
  coordinator_.SetPhase(JobPhase::kDone);
  // From here on a server that does not answer has ended as it should.
  supervisor_.Stop();
  servers_.Finish();
  if (!coordinator_.WaitUntilAlone(kLongestLeaveWait))
    LogWarning("some members did not deregister");
  LogInfo("done: step ", step, ", model ", snapshotter_.latest_prefix());
  return absl::OkStatus();
}

absl::Status Chief::TryUntilStopped(absl::FunctionRef<absl::Status()> call) {
  RetryPause pause(options_.snapshot_retry, kLongestSnapshotRetry);
  while (true) {
    const absl::Status status = call();
    if (status.ok()) return status;
    if (stop_.WaitFor(pause.Next())) {
      return absl::CancelledError(absl::StrCat(
          "by a signal, before the end of the job could be written: ", status.message()));
    }
  }
}

void Chief::AwaitFinalEvaluation(int64_t step) {
  if (!options_.expects_evaluator && !coordinator_.AnyAlive(Role::kEvaluator)) return;
  const absl::Duration start = clock_->Monotonic();
  const absl::Duration timeout =
      absl::Seconds(options_.config.evaluation().final_timeout_seconds());
  absl::Duration heard = start;
  while (!coordinator_.WaitForEvaluation(step, absl::Seconds(1), stop_)) {
    const absl::Duration now = clock_->Monotonic();
    if (coordinator_.AnyAlive(Role::kEvaluator)) heard = now;
    if (stop_.raised()) return;
    if (now - start >= timeout || now - heard >= kEvaluatorAbsence) {
      LogWarning("the evaluator has not scored step ", step, " within ",
                 absl::FormatDuration(now - start), ", ending without it");
      return;
    }
  }
}

void Chief::RunReports() {
  do {
    if (leadership_.may_report()) reporter_->Update();
  } while (!helpers_stop_.WaitFor(kReportPause));
}

}  // namespace keelson
