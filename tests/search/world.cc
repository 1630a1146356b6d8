#include "tests/search/world.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief.h"
#include "core/base/clock.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/directory_owner.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/client/sharded_parameter_client.h"
#include "core/cluster/consistency.h"
#include "core/config/train_config.h"
#include "core/device/device.h"
#include "core/model/spec/model_spec.h"
#include "evaluator/evaluator.h"
#include "evaluator/metrics_log.h"
#include "ps_server/service/departure.h"
#include "ps_server/service/parameter_handler.h"
#include "tests/search/evaluation_rule.h"
#include "tests/search/fiber_scheduler.h"
#include "tests/search/job_state_rule.h"
#include "tests/search/mode_rule.h"
#include "tests/search/network.h"
#include "tests/search/storage.h"
#include "worker/worker.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

constexpr char kModelDir[] = "/model";
constexpr absl::Duration kLease = absl::Seconds(3);
constexpr int64_t kOwnerLeaseSeconds = 3;
constexpr absl::Duration kRestartPause = absl::Seconds(1);
// What a process takes at most until it has opened its files.
constexpr absl::Duration kStartTime = absl::Milliseconds(100);
constexpr absl::Duration kEvaluatorPoll = absl::Milliseconds(500);
constexpr absl::Duration kPatience = absl::Minutes(2);
// Of messages, when the faults are over.
constexpr double kUsualSlowShare = 0.02;
constexpr absl::Duration kUsualSlow = absl::Milliseconds(50);
constexpr int64_t kMostChoices = 4'000'000;

class World {
 public:
  World(const Scenario& scenario, bool log)
      : scenario_(scenario),
        config_(RecordConfig(scenario.job, kModelDir)),
        config_hash_(ConfigHash(config_)),
        scheduler_({scenario.seed, scenario.switching,
                    log ? std::function<void(int)>([this](int group) { NameLog(group); })
                        : std::function<void(int)>()}),
        network_(&scheduler_, scenario.nodes() + 1, [this](SimProcess* process) { At(process); }),
        lives_(scenario.nodes() + 1),
        dataset_(scenario.job.records),
        ended_(scenario.nodes()),
        operations_(scenario.nodes() + 1),
        computed_(static_cast<size_t>(scenario.job.records)),
        modes_(*ConsistencyMode::FromProto(config_.consistency().mode())) {
    disk_.on_name_changed = [this](const std::string& path) {
      if (ConcernsSnapshots(path)) CheckSnapshots();
    };
    disk_.on_names_synced = [this] { durable_ = committed_; };
    network_.SetRepetition(scenario.repetition);
    network_.SetDelays(scenario.slow_share, scenario.slow);
    for (const SimFault& fault : scenario.faults) {
      if (fault.kind == SimFault::Kind::kReplace) disk_.has_locks = false;
    }
  }

  Verdict Play();

 private:
  // ---- Processes.
  SimProcess* NewProcess(size_t node);
  void Start(size_t node);
  void Run(SimProcess* process);
  absl::Status RunChief(SimProcess* process);
  // The node has done its work for the job.
  void NoteEnd(size_t node);
  absl::Status RunServer(SimProcess* process);
  SimFileSystem* NewFileSystem(SimProcess* process);
  absl::Status RunWorker(SimProcess* process);
  absl::Status RunEvaluator(SimProcess* process);
  // Asks until there is an answer.
  void ChangeMode(const ConsistencyMode& mode);
  absl::StatusOr<std::shared_ptr<DirectoryOwner>> TakeDirectory(FileSystem* file_system,
                                                                StopSignal* stop);
  absl::StatusOr<std::unique_ptr<ParameterClient>> MakeClient(SimProcess* process,
                                                              ParameterClientRequest request);
  void Ended(SimProcess* process, const absl::Status& status);
  // A reason for which an operator does not start it again.
  bool MayGiveUp(const SimProcess& process, const absl::Status& status) const;
  void Kill(SimProcess* process);
  // Called by each process around its messages and operations on files.
  void At(SimProcess* process);
  bool IsReplaced(const SimProcess* process) const { return lives_[process->node] != process; }
  void NameLog(int group);

  // ---- Faults.
  void Schedule(const SimFault& fault);
  void Begin(const SimFault& fault);
  void End(const SimFault& fault);
  void Restart(size_t node);
  void AskToStop(SimProcess* process);
  void CutPower();

  // ---- Rules.
  void Violate(const std::string& text);
  std::set<int> LivingServers() const;
  // Whether a file that has changed may leave the job without a snapshot.
  bool ConcernsSnapshots(const std::string& path) const;
  void CheckSnapshots();
  void IdentifySnapshots(const std::vector<SnapshotInfo>& snapshots);
  void CheckPersisted(const v1::ChiefHeartbeatRequest& request);
  void CheckModel();
  void CheckCount(const std::string& variable, size_t record, float count);
  void CheckChanged(const std::string& variable, const std::vector<float>& counts);
  void CheckMode(const BundleReader& snapshot);
  void CheckScored(const SnapshotInfo& newest, const BundleReader& snapshot);
  bool AnyWorker() const;
  void NoteOutcome(FiberScheduler::Outcome outcome);

  const Scenario scenario_;
  const v1::TrainConfig config_;
  const uint64_t config_hash_;
  FiberScheduler scheduler_;
  SimDisk disk_;
  SimNetwork network_;
  std::vector<std::unique_ptr<SimProcess>> processes_;  // by group
  std::vector<SimProcess*> lives_;                      // by node; null: none
  const RecordDataset dataset_;
  // Of one record.
  const RecordDataset eval_dataset_ = RecordDataset(1);
  // The chief and the evaluators have to end for good, by node.
  std::vector<bool> ended_;
  std::vector<int64_t> operations_;  // by node
  std::vector<int64_t> computed_;    // by record
  ModeRule modes_;
  EvaluationRule evaluations_;
  std::set<absl::Time> identified_;  // the snapshots that it knows, by the times of their commits
  bool committed_ = false;           // a snapshot was seen
  std::string restorable_;           // the one that could be opened at the last look
  bool durable_ = false;             // and is there after a power cut
  bool replaced_ = false;            // a chief that was frozen
  // A server ended alone, and with it the steps since the snapshot of which it was restored.
  bool lost_shard_ = false;
  bool done_ = false;
  std::string violation_;
};

void World::NameLog(int group) {
  SetLogName(absl::StrCat(absl::FormatDuration(scheduler_.Monotonic()), " ",
                          scenario_.NameOf(processes_[static_cast<size_t>(group)]->node), "/",
                          group));
}

void World::Violate(const std::string& text) {
  if (violation_.empty()) violation_ = text;
  scheduler_.Stop();
}

// ---- Processes.

SimProcess* World::NewProcess(size_t node) {
  auto process = std::make_unique<SimProcess>();
  process->node = node;
  process->group = static_cast<int>(processes_.size());
  process->started = scheduler_.Monotonic();
  SimProcess* const started = process.get();
  processes_.push_back(std::move(process));
  lives_[node] = started;
  return started;
}

void World::Start(size_t node) {
  SimProcess* const started = NewProcess(node);
  scheduler_.StartIn(started->group, [this, started] { Run(started); });
}

void World::Run(SimProcess* process) {
  absl::Status status;
  if (process->node == 0) {
    status = RunChief(process);
  } else if (scenario_.IsServer(process->node)) {
    status = RunServer(process);
  } else if (scenario_.IsWorker(process->node)) {
    status = RunWorker(process);
  } else {
    status = RunEvaluator(process);
  }
  Ended(process, status);
}

absl::StatusOr<std::shared_ptr<DirectoryOwner>> World::TakeDirectory(FileSystem* file_system,
                                                                     StopSignal* stop) {
  DirectoryOwner::Options options;
  options.model_dir = kModelDir;
  options.self.set_owner(scheduler_.Random());
  options.self.set_task("chief-0");
  options.self.set_boot_id("simulated");
  options.self.set_lease_seconds(kOwnerLeaseSeconds);
  absl::StatusOr<std::unique_ptr<DirectoryOwner>> owner =
      DirectoryOwner::Take(std::move(options), file_system, Clock::Real(), stop);
  if (!owner.ok()) return owner.status();
  return std::shared_ptr<DirectoryOwner>(*std::move(owner));
}

SimFileSystem* World::NewFileSystem(SimProcess* process) {
  return new SimFileSystem(&scheduler_, &disk_, process, [this, process] { At(process); });
}

// What a process makes is not destroyed by a kill, so it is not owned by anything that could be.
absl::Status World::RunChief(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  SimFileSystem* const files = NewFileSystem(process);
  // As every program does first.
  const auto marker = CheckpointDirectory(files, kModelDir, Clock::Real()).ReadDoneMarker();
  if (marker.ok() && marker->has_value()) return absl::OkStatus();
  ChiefOptions options;
  absl::StatusOr<std::shared_ptr<DirectoryOwner>> owner = TakeDirectory(files, stop);
  if (!owner.ok()) return owner.status();
  options.owner = *std::move(owner);
  options.self = {Role::kChief, 0};
  options.incarnation = scheduler_.Random();
  options.config = config_;
  options.config_hash = config_hash_;
  options.variables = InferModelSpec(config_.model())->variables;
  options.train_records = scenario_.job.records;
  options.expects_evaluator = scenario_.evaluators > 0;
  options.address = "chief";
  options.startup_timeout = absl::Minutes(1);
  options.lease = kLease;
  options.checkpoint_writer =
      scenario_.servers_write ? CheckpointWriter::kServers : CheckpointWriter::kChief;
  options.file_system = files;
  std::vector<ServerGroup::Server> servers;
  for (size_t s = 0; s < scenario_.servers; ++s) {
    const std::string name = absl::StrCat("ps-", s);
    servers.push_back({name, name,
                       new SimParameterControl(
                           &network_, process, 1 + s,
                           [this](const v1::InitializeShardRequest& request) {
                             if (committed_ && !request.has_restore_step()) {
                               Violate(
                                   "initial: a shard is given initial values although a "
                                   "snapshot was committed");
                             }
                           },
                           [this](const auto& request) { CheckPersisted(request); })});
  }
  absl::StatusOr<std::unique_ptr<Chief>> chief =
      Chief::Create(std::move(options), std::move(servers), Clock::Real(), stop);
  if (!chief.ok()) return chief.status();
  process->chief = (*chief)->service();
  // One that was replaced while it was frozen has lost its address.
  if (!IsReplaced(process)) network_.Connect(process->node, process);
  return chief->release()->Run();
}

void World::NoteEnd(size_t node) {
  if (node != 0 && !scenario_.IsEvaluator(node)) return;
  ended_[node] = true;
  for (size_t each = 0; each < scenario_.nodes(); ++each) {
    if ((each == 0 || scenario_.IsEvaluator(each)) && !ended_[each]) return;
  }
  done_ = true;
  scheduler_.Stop();
}

absl::Status World::RunServer(SimProcess* process) {
  auto* const asked = process->stop = new StopSignal();
  auto* const end = new StopSignal();
  auto* const ends = new StopCallback(end, [asked] { asked->Raise(); });
  static_cast<void>(ends);
  ParameterHandler::Options options;
  options.incarnation = scheduler_.Random();
  options.config_hash = config_hash_;
  options.chief_exclusive = kLease;
  if (scenario_.servers_write) {
    options.model_dir = kModelDir;
    options.file_system = NewFileSystem(process);
  }
  auto* const handler = new ParameterHandler(options, Clock::Real(), end);
  process->control = handler;
  process->bulk = handler;
  network_.Connect(process->node, process);
  // As the program does.
  asked->Wait();
  handler->Leave();
  LingerForChief([handler] { return handler->chief_sign(); },
                 [handler] { return handler->CloseIfSaved(); }, DepartureLimits(), Clock::Real(),
                 *end);
  if (!end->raised()) {
    // The chief waits for steps under way, but not for any time.
    v1::ShardStatus left;
    handler->GetStatus({}, &left).IgnoreError();
    lost_shard_ =
        lost_shard_ || handler->chief_sign().unsaved ||
        (left.state() == v1::ShardStatus::READY && left.open_round() > left.committed_round());
    return absl::CancelledError("by a signal");
  }
  // Finish has to be answered.
  const StopSignal never;
  never.WaitFor(kRestartPause);
  return absl::OkStatus();
}

void World::ChangeMode(const ConsistencyMode& mode) {
  SimProcess* const process = NewProcess(scenario_.user());
  scheduler_.StartIn(process->group, [this, process, mode] {
    SimChiefService chief(&network_, process, 0);
    v1::SetModeRequest request;
    *request.mutable_mode() = mode.ToProto();
    while (true) {
      const size_t number = modes_.Ask(mode);
      v1::SetModeResponse response;
      const absl::Status status = chief.SetMode(request, &response);
      if (status.ok()) {
        LogInfo("the mode is changed to ", mode.ToString());
        return modes_.NoteAnswer(number, LivingServers());
      }
      if (absl::IsFailedPrecondition(status)) return modes_.NoteRefusal(number);
      scheduler_.WaitFor(process, kRestartPause);
    }
  });
}

std::set<int> World::LivingServers() const {
  std::set<int> groups;
  for (size_t node = 1; node <= scenario_.servers; ++node) {
    if (lives_[node] != nullptr && lives_[node]->alive) groups.insert(lives_[node]->group);
  }
  return groups;
}

absl::StatusOr<std::unique_ptr<ParameterClient>> World::MakeClient(SimProcess* process,
                                                                   ParameterClientRequest request) {
  const ModelSpec spec = *InferModelSpec(config_.model());
  ShardedParameterClient::Options options =
      TransferOptions(config_.transfer(), spec.variables, request.placement);
  options.self = {Role::kWorker, static_cast<int>(process->node - 1 - scenario_.servers)};
  options.membership = request.membership;
  options.member_epoch = request.member_epoch;
  options.memory = std::move(request.memory);
  options.call_timeout = absl::Seconds(5);
  std::vector<size_t> servers;
  for (size_t s = 0; s < scenario_.servers; ++s) servers.push_back(1 + s);
  return ShardedParameterClient::Create(std::move(options), spec.variables, request.placement,
                                        MakeSimBulkTransport(&network_, process, servers),
                                        Clock::Real(), request.stop);
}

absl::Status World::RunWorker(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  WorkerOptions options;
  options.self = {Role::kWorker, static_cast<int>(process->node - 1 - scenario_.servers)};
  options.peer = scenario_.NameOf(process->node);
  options.config = config_;
  options.config_hash = config_hash_;
  DeviceGroup* const devices =
      RecordDevices([this](int64_t record) {
        ++computed_[static_cast<size_t>(record)];
        scheduler_.WaitFor(&computed_,
                           scheduler_.Between(absl::Milliseconds(1), scenario_.step_time));
      }).release();
  auto* const worker = new Worker(
      options, new SimChiefService(&network_, process, 0),
      [this, process](ParameterClientRequest request) {
        return MakeClient(process, std::move(request));
      },
      devices, &dataset_, Clock::Real(), stop);
  return worker->Run();
}

absl::Status World::RunEvaluator(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  SimFileSystem* const files = NewFileSystem(process);
  EvaluatorOptions options;
  options.self = {Role::kEvaluator,
                  static_cast<int>(process->node - 1 - scenario_.servers - scenario_.workers)};
  options.peer = scenario_.NameOf(process->node);
  options.config = config_;
  options.config_hash = config_hash_;
  options.on_evaluation = [this](const EvaluationRecord& record, bool scored_here) {
    const std::string wrong = scored_here ? evaluations_.Add(record) : "";
    if (!wrong.empty()) Violate(absl::StrCat("score: ", wrong));
  };
  options.file_system = options.lease_files = options.export_files = files;
  options.poll_interval = kEvaluatorPoll;
  Device* const device =
      ScoringDevice([this] {
        scheduler_.WaitFor(&evaluations_,
                           scheduler_.Between(absl::Milliseconds(1), scenario_.score_time));
      }).release();
  auto* const chief = new SimChiefService(
      &network_, process, 0, [this](const v1::AcknowledgeEvaluationRequest& request) {
        const std::string wrong =
            evaluations_.CheckAcknowledged(request.step(), request.snapshot_id());
        if (!wrong.empty()) Violate(absl::StrCat("score: ", wrong));
      });
  auto* const evaluator =
      new Evaluator(options, chief, device, &eval_dataset_, Clock::Real(), stop);
  return evaluator->Run();
}

void World::Ended(SimProcess* process, const absl::Status& status) {
  const FiberScheduler::Atomic atomic(&scheduler_);
  LogInfo("ends: ", status.ToString());
  const bool restarts = !IsReplaced(process) && !status.ok();
  const int code = ExitCodeFor(status);
  const bool gives_up = code == kExitPermanent || code == kExitInternal;
  if (gives_up && !MayGiveUp(*process, status)) {
    Violate(absl::StrCat("end of ", scenario_.NameOf(process->node), " by ",
                         absl::StatusCodeToString(status.code()), ": ", status.message()));
  }
  if (status.ok()) NoteEnd(process->node);
  if (restarts) Restart(process->node);
  scheduler_.At(absl::ZeroDuration(), [this, process] { Kill(process); });
}

bool World::MayGiveUp(const SimProcess& process, const absl::Status& status) const {
  // Where it cannot write at its start.
  if (scenario_.IsEvaluator(process.node) && absl::IsPermissionDenied(status)) {
    return disk_.fault == StorageFault::kReadOnly &&
           process.started + kStartTime >= disk_.fault_since;
  }
  // A directory that cannot be written to, for a job that has none yet. The chief tells the
  // workers.
  const bool begins = !committed_ && !absl::StrContains(status.message(), kNoAnswer) &&
                      !absl::StrContains(status.message(), kConnectionReset);
  if (absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status)) return begins;
  // Another chief has, or had just now, the better claim.
  const bool rivals = replaced_ && scheduler_.Monotonic() < scenario_.faults_end + 4 * kLease;
  return rivals && absl::IsAlreadyExists(status);
}

void World::Restart(size_t node) {
  scheduler_.At(kRestartPause, [this, node] {
    if (lives_[node] == nullptr || !lives_[node]->alive) Start(node);
  });
}

void World::Kill(SimProcess* process) {
  if (!process->alive) return;
  process->alive = false;
  modes_.NoteEnd(process->group);
  network_.Forget(process);
  scheduler_.Kill(process->group);
}

void World::At(SimProcess* process) {
  if (IsReplaced(process)) return scheduler_.Pause();
  const int64_t operation = ++operations_[process->node];
  for (const SimFault& fault : scenario_.faults) {
    if (fault.kind != SimFault::Kind::kKillAt || fault.node != process->node) continue;
    if (fault.operation == operation) Begin(fault);
  }
}

// ---- Faults.

void World::Schedule(const SimFault& fault) {
  if (fault.kind == SimFault::Kind::kKillAt) return;
  scheduler_.At(fault.at, [this, fault] { Begin(fault); });
}

void World::Begin(const SimFault& fault) {
  SimProcess* const process = lives_[fault.node];
  scheduler_.At(fault.length, [this, fault, process] {
    if (fault.kind == SimFault::Kind::kFreeze || fault.kind == SimFault::Kind::kReplace) {
      if (process != nullptr) scheduler_.SetPaused(process->group, false);
    }
    End(fault);
  });
  switch (fault.kind) {
    case SimFault::Kind::kKill:
    case SimFault::Kind::kKillAt:
      lost_shard_ = lost_shard_ || scenario_.IsServer(fault.node);
      if (process != nullptr) Kill(process);
      break;
    case SimFault::Kind::kFreeze:
      if (process != nullptr) scheduler_.SetPaused(process->group, true);
      break;
    case SimFault::Kind::kReplace:
      if (process == nullptr) break;
      scheduler_.SetPaused(process->group, true);
      replaced_ = true;
      network_.Connect(fault.node, nullptr);
      Start(fault.node);
      break;
    case SimFault::Kind::kStop:
      AskToStop(process);
      break;
    case SimFault::Kind::kStopAll:
      for (SimProcess* const life : lives_) AskToStop(life);
      break;
    case SimFault::Kind::kSetMode:
      ChangeMode(fault.mode);
      break;
    case SimFault::Kind::kCut:
      network_.Cut(fault.node, fault.other, true);
      if (fault.both) network_.Cut(fault.other, fault.node, true);
      break;
    case SimFault::Kind::kLoss:
      network_.SetLoss(0.05);
      break;
    case SimFault::Kind::kStorage:
      disk_.fault = fault.storage;
      disk_.fault_since = scheduler_.Monotonic();
      if (fault.storage != StorageFault::kHangs) evaluations_.NoteTrouble();
      break;
    case SimFault::Kind::kPowerCut:
      CutPower();
      break;
    case SimFault::Kind::kErase:
      disk_.files.RemoveTree(kModelDir);
      CheckSnapshots();
      break;
  }
}

void World::End(const SimFault& fault) {
  switch (fault.kind) {
    case SimFault::Kind::kKill:
    case SimFault::Kind::kKillAt:
      if (lives_[fault.node] == nullptr || !lives_[fault.node]->alive) Start(fault.node);
      break;
    case SimFault::Kind::kCut:
      network_.Cut(fault.node, fault.other, false);
      network_.Cut(fault.other, fault.node, false);
      break;
    case SimFault::Kind::kLoss:
      network_.SetLoss(0);
      break;
    case SimFault::Kind::kStorage:
      disk_.fault = StorageFault::kNone;
      break;
    case SimFault::Kind::kPowerCut:
      for (size_t node = 0; node < scenario_.nodes(); ++node) Restart(node);
      break;
    case SimFault::Kind::kFreeze:
    case SimFault::Kind::kReplace:
    case SimFault::Kind::kStop:
    case SimFault::Kind::kStopAll:
    case SimFault::Kind::kSetMode:
    case SimFault::Kind::kErase:
      break;
  }
}

// In a thread of the process, as that which watches for signals is.
void World::AskToStop(SimProcess* process) {
  if (process == nullptr || !process->alive || process->stop == nullptr) return;
  scheduler_.StartIn(process->group, [process] { process->stop->Raise(); });
}

void World::CutPower() {
  for (const auto& process : processes_) Kill(process.get());
  constexpr Unsynced kOutcomes[] = {Unsynced::kLost, Unsynced::kKept, Unsynced::kNamesKept,
                                    Unsynced::kBytesKept, Unsynced::kLastNameKept};
  disk_.files.Restart(kOutcomes[scheduler_.Random() % std::size(kOutcomes)]);
  // The first commit may have been under way. Nobody has trained from it then.
  const bool trained =
      std::any_of(computed_.begin(), computed_.end(), [](int64_t times) { return times > 0; });
  if (!durable_ && !trained) committed_ = false;
  CheckSnapshots();
}

// ---- Rules.

void World::IdentifySnapshots(const std::vector<SnapshotInfo>& snapshots) {
  for (const SnapshotInfo& snapshot : snapshots) {
    if (identified_.contains(snapshot.time)) continue;
    const auto reader = BundleReader::Open(snapshot.prefix, &disk_.files);
    if (!reader.ok()) continue;
    const auto id = ReadSnapshotId(**reader);
    const auto loss = LossOf(**reader);
    if (!id.ok() || !loss.ok()) continue;
    evaluations_.NoteSnapshot(*id, snapshot.step, *loss);
    identified_.insert(snapshot.time);
  }
}

bool World::ConcernsSnapshots(const std::string& path) const {
  return path == JoinPath(kModelDir, "checkpoint") ||
         (!restorable_.empty() && absl::StartsWith(path, absl::StrCat(restorable_, ".")) &&
          !absl::StrContains(path, kLeaseInfix));
}

void World::CheckSnapshots() {
  const FiberScheduler::Atomic atomic(&scheduler_);
  const CheckpointDirectory directory(&disk_.files, kModelDir, Clock::Real());
  const auto snapshots = directory.List();
  if (!snapshots.ok()) return Violate(absl::StrCat("snapshot: ", snapshots.status().ToString()));
  if (snapshots->empty()) {
    if (committed_) Violate("snapshot: none is there any more");
    return;
  }
  committed_ = true;
  if (scenario_.evaluators > 0) IdentifySnapshots(*snapshots);
  for (const SnapshotInfo& snapshot : *snapshots) {
    if (!BundleReader::Open(snapshot.prefix, &disk_.files).ok()) continue;
    restorable_ = snapshot.prefix;
    return;
  }
  Violate(absl::StrCat("snapshot: none of ", snapshots->size(), " can be opened"));
}

void World::CheckPersisted(const v1::ChiefHeartbeatRequest& request) {
  const size_t tasks = scenario_.workers + scenario_.evaluators;
  const size_t lost = processes_.size() + scenario_.faults.size();
  if (static_cast<size_t>(request.members().members_size()) > tasks) {
    Violate(
        absl::StrCat("state: ", request.members().members_size(), " members of ", tasks, " tasks"));
  }
  if (request.job_state().empty()) return;
  v1::PersistedJobState state;
  const bool parsed = state.ParseFromString(request.job_state());
  const std::string wrong = parsed ? CheckJobState(state, tasks, lost) : "it cannot be parsed";
  if (!wrong.empty()) Violate(absl::StrCat("state: ", wrong));
}

void World::CheckCount(const std::string& variable, size_t record, float count) {
  const bool once = scenario_.job.mode == RecordMode::kSynchronous;
  const float least = lost_shard_ ? 0 : 1;
  const float most = once ? 1 : static_cast<float>(computed_[record]);
  if (count >= least && count <= most) return;
  Violate(absl::StrCat("counts: record ", record, " counts ", count, " times in ", variable,
                       ", expected ", least, " to ", most, "; it was computed ", computed_[record],
                       " times"));
}

void World::CheckModel() {
  const FiberScheduler::Atomic atomic(&scheduler_);
  const CheckpointDirectory directory(&disk_.files, kModelDir, Clock::Real());
  const auto snapshots = directory.List();
  if (!snapshots.ok() || snapshots->empty()) return Violate("snapshot: the job left none");
  const SnapshotInfo& newest = snapshots->back();
  if (newest.step != config_.train().max_steps()) {
    return Violate(absl::StrCat("counts: the job ended with a snapshot of step ", newest.step));
  }
  const auto reader = BundleReader::Open(newest.prefix, &disk_.files);
  if (!reader.ok()) return Violate(absl::StrCat("snapshot: ", reader.status().ToString()));
  for (const std::string& variable : RecordVariables()) {
    std::vector<float> counts(computed_.size());
    const absl::Status read = (*reader)->ReadElements(variable, 0, absl::MakeSpan(counts));
    if (!read.ok()) return Violate(absl::StrCat("snapshot: ", read.ToString()));
    if (modes_.changes()) {
      CheckChanged(variable, counts);
      continue;
    }
    for (size_t record = 0; record < counts.size(); ++record) {
      CheckCount(variable, record, counts[record]);
    }
  }
  CheckMode(**reader);
  CheckScored(newest, **reader);
}

void World::CheckScored(const SnapshotInfo& newest, const BundleReader& snapshot) {
  if (scenario_.evaluators == 0) return;
  const auto id = ReadSnapshotId(snapshot);
  const auto file = ReadFile(JoinPath(kModelDir, "eval/metrics.jsonl"), &disk_.files);
  if (!id.ok() || !file.ok()) {
    return Violate(absl::StrCat("score: ", id.status().ToString(), file.status().ToString()));
  }
  const std::string wrong = EvaluationRule::CheckEnd(*file, newest.step, *id);
  if (!wrong.empty()) Violate(absl::StrCat("score: ", wrong));
}

// Each step adds the rate in all, be it to one record's element or in parts to several.
void World::CheckChanged(const std::string& variable, const std::vector<float>& counts) {
  const auto rate = static_cast<float>(config_.learning_rate().base());
  const float expected = rate * static_cast<float>(config_.train().max_steps());
  const float sum = std::accumulate(counts.begin(), counts.end(), 0.0f);
  const bool lacks = !lost_shard_ && sum < expected;
  if (lacks || (modes_.synchronous() && sum > expected)) {
    Violate(absl::StrCat("counts: all records together count ", sum, " in ", variable,
                         ", expected ", expected));
  }
  for (size_t record = 0; record < counts.size(); ++record) {
    const float most = rate * static_cast<float>(computed_[record]);
    if (counts[record] <= most) continue;
    Violate(absl::StrCat("counts: record ", record, " counts ", counts[record], " times in ",
                         variable, ", expected at most ", most));
  }
}

void World::CheckMode(const BundleReader& snapshot) {
  const auto state = ReadJobState(snapshot);
  if (!state.ok() || !state->has_value()) {
    return Violate(absl::StrCat("snapshot: no job state: ", state.status().ToString()));
  }
  const auto mode = ConsistencyMode::FromProto((*state)->has_mode() ? (*state)->mode()
                                                                    : config_.consistency().mode());
  const std::string wrong = modes_.Check(*mode);
  if (!wrong.empty()) Violate(absl::StrCat("mode: ", wrong));
}

bool World::AnyWorker() const {
  return std::any_of(lives_.begin(), lives_.end(), [this](const SimProcess* life) {
    return life != nullptr && life->alive && scenario_.IsWorker(life->node);
  });
}

void World::NoteOutcome(FiberScheduler::Outcome outcome) {
  if (!violation_.empty()) return;
  if (done_) return CheckModel();
  switch (outcome) {
    case FiberScheduler::Outcome::kTimeLimit:
      return Violate(absl::StrCat(AnyWorker() ? "progress: the job has not ended at "
                                              : "progress: every worker has left, and the job has "
                                                "not ended at ",
                                  absl::FormatDuration(scheduler_.Monotonic())));
    case FiberScheduler::Outcome::kChoiceLimit:
      return Violate("progress: some thread never waits");
    case FiberScheduler::Outcome::kStopped:
    case FiberScheduler::Outcome::kFinished:
    case FiberScheduler::Outcome::kDeadlock:
      return Violate("progress: nothing is left to run");
  }
}

Verdict World::Play() {
  // A replaced process has had its time when the faults are over.
  for (const SimFault& fault : scenario_.faults) Schedule(fault);
  scheduler_.At(scenario_.faults_end, [this] {
    network_.SetDelays(kUsualSlowShare, kUsualSlow);
    for (const auto& process : processes_) {
      if (IsReplaced(process.get())) Kill(process.get());
    }
  });
  for (size_t node = 0; node < scenario_.nodes(); ++node) {
    scheduler_.At(scheduler_.Between(absl::ZeroDuration(), absl::Seconds(1)), [this, node] {
      if (lives_[node] == nullptr) Start(node);
    });
  }
  NoteOutcome(scheduler_.Run(scenario_.faults_end + kPatience, kMostChoices));
  return {violation_, scheduler_.trace(), scheduler_.choices(), scheduler_.Monotonic()};
}

}  // namespace

Verdict Play(const Scenario& scenario, bool log) {
  auto* const world = new World(scenario, log);
  return world->Play();
}

}  // namespace keelson
