#include "chief/lifecycle/chief.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chief/lifecycle/save_schedule.h"
#include "chief/reporting/run_files.h"
#include "chief/servers/warm_start_storage.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/config/shard_layout.h"
#include "core/config/train_config.h"
#include "core/optim/learning_rate.h"

namespace keelson {
namespace {

constexpr absl::Duration kReportPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestSnapshotRetry = absl::Minutes(1);
// How long members have to learn that the job has ended before the chief's server stops.
constexpr absl::Duration kLongestLeaveWait = absl::Seconds(3);

// A synchronous step takes several batches.
int64_t BatchesPerStep(const v1::TrainConfig& config) {
  const v1::ConsistencyMode& mode = config.consistency().mode();
  return mode.has_synchronous() ? mode.synchronous().replicas_to_aggregate() : 1;
}

// This counts for a job that begins now; one that goes on counts what is left
// (WorkLedger::CountSteps).
int64_t MaxSteps(const ChiefOptions& options) {
  const v1::TrainingConfig& train = options.config.train();
  if (train.max_steps() > 0) return train.max_steps();
  if (options.stream != nullptr) return kEndlessSteps;
  return WorkPool::StepsFor(train.epochs(), options.train_records,
                            train.batch_size() * BatchesPerStep(options.config));
}

// "2 parameter servers", "3 tasks that hold the model".
std::string HoldersOf(const ServerGroup& servers) {
  size_t hosts = 0;
  for (size_t s = 0; s < servers.size(); ++s) hosts += servers.HostOf(s).has_value() ? 1 : 0;
  const std::string of_servers = absl::StrCat(servers.size() - hosts, " parameter servers");
  if (hosts == 0) return of_servers;
  const std::string of_hosts = absl::StrCat(hosts, " tasks that hold the model");
  return hosts == servers.size() ? of_hosts : absl::StrCat(of_servers, " and ", of_hosts);
}

// 0: unknown.
int64_t KnownSteps(int64_t max_steps) { return max_steps == kEndlessSteps ? 0 : max_steps; }

Coordinator::Options CoordinatorOptions(const ChiefOptions& options, const ConsistencyMode& mode) {
  Coordinator::Options out;
  out.mode = mode;
  out.config_hash = options.config_hash;
  out.lease = options.lease;
  out.loss_interval = options.config.train().summary_steps();
  out.max_loss = options.config.train().max_loss();
  out.min_workers = static_cast<int>(options.config.collective().min_workers());
  out.deterministic_sum = options.config.consistency().deterministic_sum();
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
  out.replicas = options.replicas;
  return out;
}

v1::InitializeShardRequest ShardsOf(const ChiefOptions& options, const Placement& placement,
                                    int64_t max_steps) {
  v1::InitializeShardRequest request;
  *request.mutable_placement() = placement.ToProto();
  request.set_placement_fingerprint(placement.Fingerprint());
  *request.mutable_optimizer() = options.config.optimizer();
  *request.mutable_learning_rate() = options.config.learning_rate();
  request.set_max_steps(KnownSteps(max_steps));
  request.set_seed(options.config.train().seed());
  request.set_reject_non_finite(options.config.transfer().reject_non_finite());
  *request.mutable_stale_gradients() = options.config.consistency().stale_gradients();
  return request;
}

WorkOptions Work(const ChiefOptions& options, int64_t max_steps) {
  const v1::TrainingConfig& train = options.config.train();
  WorkOptions work;
  work.max_steps = max_steps;
  work.epochs = train.max_steps() > 0 || options.stream != nullptr ? 0 : train.epochs();
  work.num_records = options.train_records;
  work.batch_size = train.batch_size();
  work.first_lease_id = RandomId() | 1;
  work.stream = options.stream != nullptr;
  return work;
}

ColdStart::Options ColdStartOptions(const ChiefOptions& options, int64_t max_steps) {
  ColdStart::Options out;
  out.config_hash = options.config_hash;
  out.work = Work(options, max_steps);
  out.model_dir = options.config.checkpoint().model_dir();
  out.startup_timeout = options.startup_timeout;
  out.missing_patience = options.missing_patience;
  return out;
}

JobStart::Options StartOptions(const ChiefOptions& options, int64_t max_steps) {
  JobStart::Options out;
  out.config_hash = options.config_hash;
  out.work = Work(options, max_steps);
  out.startup_timeout = options.startup_timeout;
  return out;
}

RetryPause PauseOf(const ChiefOptions& options) {
  return RetryPause(options.snapshot_retry, kLongestSnapshotRetry);
}

TrainingPhase::Options TrainingOptions(const ChiefOptions& options) {
  TrainingPhase::Options out;
  out.saves.save_steps = options.config.checkpoint().save_steps();
  out.saves.interval = absl::Seconds(options.config.checkpoint().save_seconds());
  out.saves.retry = PauseOf(options);
  out.step_wait = options.step_wait;
  return out;
}

JobEnding::Options EndingOptions(const ChiefOptions& options) {
  JobEnding::Options out;
  out.config_hash = options.config_hash;
  out.expects_evaluator = options.expects_evaluator;
  out.evaluation_timeout = absl::Seconds(options.config.evaluation().final_timeout_seconds());
  out.leave_wait = kLongestLeaveWait;
  out.retry = PauseOf(options);
  return out;
}

// Parameter servers come first.
ShardGroups ShardGroupsOf(const ChiefOptions& options,
                          const std::vector<ServerGroup::Server>& servers) {
  ShardGroups groups = {0, 0};
  for (const ServerGroup::Server& server : servers) {
    ++(server.host.has_value() ? groups.workers : groups.servers);
  }
  groups.on_workers = [&config = options.config.placement()](absl::string_view name) {
    return GroupPlaceOf(config, name) == v1::PlacementConfig::Group::WORKERS;
  };
  return groups;
}

// The addresses are left out: they may change until training begins.
ModelLocation LocationOf(const ChiefOptions& options,
                         const std::vector<ServerGroup::Server>& servers) {
  return {Placement::ComputeIn(ShardGroupsOf(options, servers), options.variables,
                               Placement::kDefaultBlockElements, options.tables),
          {},
          options.stream == nullptr ? options.train_records : 0};
}

std::unique_ptr<ShardStorage> MakeStorage(const ChiefOptions& options,
                                          const CheckpointDirectory* directory) {
  std::unique_ptr<ShardStorage> storage;
  if (options.checkpoint_writer == CheckpointWriter::kServers) {
    storage = std::make_unique<ServerStorage>();
  } else {
    storage = std::make_unique<ChiefStorage>(directory);
  }
  if (StoredStartsOf(options.config.initial_values(), options.variables).empty()) return storage;
  return std::make_unique<WarmStartStorage>(options.config, options.variables, std::move(storage));
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
  RETURN_IF_ERROR(
      LearningRateSchedule::Create(options.config.learning_rate(), KnownSteps(max_steps)).status());
  ASSIGN_OR_RETURN(
      const ConsistencyMode mode,
      ConsistencyMode::FromProto(options.config.consistency().mode(), "consistency.mode"));
  std::unique_ptr<Chief> chief(
      new Chief(std::move(options), std::move(servers), max_steps, mode, clock, stop));
  chief->reporter_ =
      Reporter::Create(chief->ReporterOptions(), clock, chief->coordinator_.reports());
  return chief;
}

Chief::Chief(ChiefOptions options, std::vector<ServerGroup::Server> servers, int64_t max_steps,
             const ConsistencyMode& mode, const Clock* clock, StopSignal* stop)
    : options_(std::move(options)),
      max_steps_(max_steps),
      model_(LocationOf(options_, servers)),
      stop_(stop),
      leadership_(options_.owner.get(), &stop_),
      directory_(options_.file_system, options_.config.checkpoint().model_dir(), clock),
      storage_(MakeStorage(options_, &directory_)),
      coordinator_(CoordinatorOptions(options_, mode), clock),
      handler_(
          &coordinator_, [this] { return servers_.States(); }, options_.config),
      servers_(ServerGroupOptions(options_), std::move(servers), storage_.get(), clock, &stop_),
      snapshotter_(&directory_, &servers_,
                   {.keep_max = options_.config.checkpoint().keep_max(),
                    .keep_every_n_hours = options_.config.checkpoint().keep_every_n_hours(),
                    .deltas = !options_.config.model().tables().empty()},
                   clock, {.full_every = options_.config.checkpoint().full_every()}),
      snapshots_(&directory_, &snapshotter_, &servers_, &coordinator_, &leadership_),
      leases_({options_.lease, options_.leave_within}, coordinator_.roster(), &servers_,
              Clock::Real(), &stop_),
      rounds_(coordinator_.rounds(), &servers_, &leadership_, clock),
      announcer_(coordinator_.roster(), coordinator_.persistence(), &servers_, clock,
                 [this] { supervisor_.PersistNow(); }),
      supervisor_(&servers_, SupervisedJob(), clock, options_.supervision),
      cold_start_(ColdStartOptions(options_, max_steps), model_, &coordinator_, &servers_,
                  &snapshotter_, &snapshots_, &leadership_, clock, &stop_),
      start_(StartOptions(options_, max_steps), model_, &cold_start_, &coordinator_, &servers_,
             &supervisor_, &snapshotter_, &snapshots_, &leadership_, clock, &stop_),
      stream_(options_.stream.get(), coordinator_.stream(), clock),
      training_(TrainingOptions(options_), &coordinator_, &servers_, &snapshots_, &leadership_,
                &stream_, clock, &stop_),
      ending_(EndingOptions(options_), &directory_, &coordinator_, &servers_, &supervisor_,
              &snapshotter_, &snapshots_, &leadership_, clock, &stop_) {}

ServerSupervisor::Job Chief::SupervisedJob() {
  return {[this] { return coordinator_.persistence()->PersistedState(); },
          [this] { return coordinator_.roster()->MemberList(); },
          [this] { return coordinator_.roster()->epoch(); },
          [this](uint64_t version) { coordinator_.persistence()->NoteStored(version); },
          [this] { return snapshotter_.Snapshots(); },
          [this](const absl::Status& status) { leadership_.NoteReplaced(status); },
          [this](int64_t round) { coordinator_.rounds()->NoteForeignCommit(round); },
          [this](uint64_t epoch) { announcer_.HandOnTold(epoch); },
          [this](const std::optional<Task>& lost) { NoteMoved(lost); },
          [this] { return coordinator_.control()->HoldMode(); },
          [this] { coordinator_.control()->ReleaseMode(); },
          [this] { return leadership_.ConfirmDirectory(); }};
}

void Chief::NoteMoved(const std::optional<Task>& lost) {
  // What it computes is then computed by others.
  if (lost.has_value()) coordinator_.roster()->Suspect(*lost);
  TellAddresses();
}

void Chief::NoteAddress(const Task& host, const std::string& address) {
  servers_.NoteAddress(host, address);
  TellAddresses();
}

void Chief::TellAddresses() {
  MutexLock lock(&addresses_mu_);
  if (begun_) coordinator_.shards()->Set(servers_.Addresses());
}

double Chief::LearningRateAt(int64_t step) const {
  const absl::StatusOr<LearningRateSchedule> schedule =
      LearningRateSchedule::Create(options_.config.learning_rate(), servers_.max_steps());
  return schedule.ok() ? schedule->At(step) : 0;  // The servers have refused it.
}

Reporter::Options Chief::ReporterOptions() {
  Reporter::Options out;
  out.model_dir = options_.config.checkpoint().model_dir();
  out.learning_rate = [this](int64_t step) { return LearningRateAt(step); };
  out.missing_servers = [this] { return servers_.Missing(); };
  out.snapshots = [this] { return snapshotter_.figures(); };
  out.servers = [this] { return servers_.States(); };
  out.chief.task = options_.self;
  out.chief.peer = options_.peer;
  out.expected_members = options_.expected_members;
  if (options_.stream == nullptr) {
    out.batches_per_epoch = static_cast<double>(options_.train_records) /
                            static_cast<double>(options_.config.train().batch_size());
  }
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
    coordinator_.control()->Fail(status);
    coordinator_.roster()->WaitUntilAlone(kLongestLeaveWait);
  }
  helpers_stop_.Raise();
  leases.Join();
  reports.Join();
  if (leadership_.may_report()) reporter_->Finish();
  return status;
}

absl::Status Chief::RunJob() {
  const std::optional<DoneMarker> done_before = directory_.ReadDoneMarker().value_or(std::nullopt);
  RETURN_IF_ERROR(directory_.RemoveDoneMarker());
  servers_.Describe(ShardsOf(options_, model_.placement, max_steps_));
  LogInfo("waiting for ", HoldersOf(servers_));
  RETURN_IF_ERROR(servers_.WaitUntilReachable());
  LogInfo("placement:");
  std::printf("%s", model_.placement.ToTable().c_str());
  std::fflush(stdout);
  ASSIGN_OR_RETURN(const absl::Duration saved_at, start_.Run());
  {
    MutexLock lock(&addresses_mu_);
    begun_ = true;
  }
  TellAddresses();
  DescribeRun();
  supervisor_.Start();
  if (leadership_.may_report()) {
    const absl::Status cleaned = directory_.RemoveStaleFiles(leftovers_);
    if (!cleaned.ok()) LogWarning("files of a predecessor stay: ", cleaned.message());
  }
  Thread announcements([this] { announcer_.Run(helpers_stop_); });
  Thread rounds([this] { rounds_.Run(helpers_stop_); });
  Thread stream([this] { stream_.Run(helpers_stop_); });
  absl::Status status = training_.Run(saved_at);
  if (status.ok()) status = ending_.Run(done_before);
  helpers_stop_.Raise();
  announcements.Join();
  rounds.Join();
  stream.Join();
  supervisor_.Stop();
  return status;
}

void Chief::DescribeRun() {
  absl::Status written =
      WriteRunFiles(options_.config, model_.placement, servers_.States(), options_.file_system);
  written.Update(reporter_->DescribeRun(options_.config));
  if (!written.ok()) LogError("the run's description: ", written.message());
}

void Chief::RunReports() {
  do {
    if (leadership_.may_report()) reporter_->Update();
  } while (!helpers_stop_.WaitFor(kReportPause));
}

}  // namespace keelson
