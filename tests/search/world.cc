#include "tests/search/world.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/cluster/consistency.h"
#include "tests/search/fiber_scheduler.h"
#include "tests/search/job_rules.h"
#include "tests/search/network.h"
#include "tests/search/record_model.h"
#include "tests/search/roles.h"
#include "tests/search/storage.h"

namespace keelson {
namespace {

constexpr char kModelDir[] = "/model";
constexpr absl::Duration kRestartPause = absl::Seconds(1);
// What a process takes at most until it has opened its files.
constexpr absl::Duration kStartTime = absl::Milliseconds(100);
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
        scheduler_({scenario.seed, scenario.switching,
                    log ? std::function<void(int)>([this](int group) { NameLog(group); })
                        : std::function<void(int)>()}),
        network_(&scheduler_, scenario.nodes() + 1,
                 [this](SimProcess* process, const SimPoint& point) { At(process, point); }),
        rules_(scenario_, config_, &scheduler_, &disk_.files,
               [this](const std::string& violation) { Violate(violation); }),
        roles_({&scenario_, &config_, &scheduler_, &disk_, &network_, &rules_,
                [this](SimProcess* process, const SimPoint& point) { At(process, point); },
                [this](const SimProcess* process) { return IsReplaced(process); }}),
        lives_(scenario.nodes() + 1),
        ended_(scenario.nodes()),
        operations_(scenario.nodes() + 1),
        reached_(scenario.faults.size()) {
    disk_.on_name_changed = [this](const std::string& path) { rules_.NoteNameChanged(path); };
    disk_.on_replaced = [this](const std::string& path, const SimProcess& by) {
      rules_.NoteReplaced(path, by.group);
    };
    network_.SetWatch(rules_.Watch());
    std::vector<std::string> addresses;
    for (size_t node = 0; node < scenario.nodes(); ++node) {
      addresses.push_back(scenario.NameOf(node));
    }
    network_.SetAddresses(std::move(addresses));
    disk_.on_names_synced = [this] { rules_.NoteNamesSynced(); };
    network_.SetRepetition(scenario.repetition);
    network_.SetDelays(scenario.slow_share, scenario.slow);
    scheduler_.SetStalls(scenario.stall, scenario.longest_stall);
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
  // The node has done its work for the job.
  void NoteEnd(size_t node);
  // Asks until there is an answer.
  void ChangeMode(const ConsistencyMode& mode);
  void Ended(SimProcess* process, const absl::Status& status);
  // A reason for which an operator does not start it again.
  bool MayGiveUp(const SimProcess& process, const absl::Status& status) const;
  void Kill(SimProcess* process);
  // A process is about to end, or to be unable to go on, without having done its part.
  void NoteLost(const SimProcess* process);
  // What a process of the node does when it wakes up beside its successor takes no step away that a
  // replica has: no step is committed without the leader, which calls the successor.
  bool ReplicasTakeOver(size_t node) const;
  // Called by each process around its messages and operations on files.
  void At(SimProcess* process, const SimPoint& point);
  // Begins the faults whose trigger this is.
  void Trigger(size_t node, const SimPoint& point);
  bool IsReplaced(const SimProcess* process) const { return lives_[process->node] != process; }
  void NameLog(int group);

  // ---- Faults.
  void Schedule(const SimFault& fault);
  void Begin(const SimFault& fault);
  void End(const SimFault& fault);
  void Restart(size_t node);
  void SetPaused(const SimProcess* process, bool paused);
  void AskToStop(SimProcess* process);
  void CutPower();

  // ---- Rules.
  void Violate(const std::string& text);
  std::set<int> LivingServers() const;
  bool AnyWorker() const;
  void NoteOutcome(FiberScheduler::Outcome outcome);

  const Scenario scenario_;
  const v1::TrainConfig config_;
  FiberScheduler scheduler_;
  SimDisk disk_;
  SimNetwork network_;
  JobRules rules_;
  SimRoles roles_;
  std::vector<std::unique_ptr<SimProcess>> processes_;  // by group
  std::vector<SimProcess*> lives_;                      // by node; null: none
  // The chief and the evaluators have to end for good, by node.
  std::vector<bool> ended_;
  std::vector<int64_t> operations_;  // by node
  // How often the point of each fault's trigger was reached.
  std::vector<int64_t> reached_;
  bool replaced_ = false;  // a chief that was frozen
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
  rules_.NoteProcess();
  lives_[node] = started;
  return started;
}

void World::Start(size_t node) {
  SimProcess* const started = NewProcess(node);
  scheduler_.StartIn(started->group, [this, started] { Run(started); });
}

void World::Run(SimProcess* process) { Ended(process, roles_.Run(process)); }

void World::NoteEnd(size_t node) {
  if (node != 0 && !scenario_.IsEvaluator(node)) return;
  ended_[node] = true;
  for (size_t each = 0; each < scenario_.nodes(); ++each) {
    if ((each == 0 || scenario_.IsEvaluator(each)) && !ended_[each]) return;
  }
  done_ = true;
  scheduler_.Stop();
}

void World::ChangeMode(const ConsistencyMode& mode) {
  SimProcess* const process = NewProcess(scenario_.user());
  scheduler_.StartIn(process->group, [this, process, mode] {
    SimChiefService chief(&network_, process, 0);
    v1::SetModeRequest request;
    *request.mutable_mode() = mode.ToProto();
    while (true) {
      const size_t number = rules_.modes()->Ask(mode);
      v1::SetModeResponse response;
      const absl::Status status = chief.SetMode(request, &response);
      if (status.ok()) {
        LogInfo("the mode is changed to ", mode.ToString());
        return rules_.modes()->NoteAnswer(number, LivingServers());
      }
      if (absl::IsFailedPrecondition(status)) return rules_.modes()->NoteRefusal(number);
      scheduler_.WaitFor(process, kRestartPause);
    }
  });
}

std::set<int> World::LivingServers() const {
  std::set<int> groups;
  for (size_t node = 0; node < scenario_.nodes(); ++node) {
    if (!scenario_.HasShard(node)) continue;
    if (lives_[node] != nullptr && lives_[node]->alive) groups.insert(lives_[node]->group);
  }
  return groups;
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
  if (status.ok()) {
    NoteEnd(process->node);
  } else if (!scenario_.OnlyAHostLeaves()) {
    NoteLost(process);
  }
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
  const bool begins = !rules_.committed() && !absl::StrContains(status.message(), kNoAnswer) &&
                      !absl::StrContains(status.message(), kConnectionReset);
  if (absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status)) return begins;
  // Another chief has, or had just now, the better claim.
  const bool rivals = replaced_ && scheduler_.Monotonic() < scenario_.faults_end + 4 * kSimLease;
  return rivals && absl::IsAlreadyExists(status);
}

void World::Restart(size_t node) {
  scheduler_.At(kRestartPause, [this, node] {
    if (lives_[node] == nullptr || !lives_[node]->alive) Start(node);
  });
}

bool World::ReplicasTakeOver(size_t node) const {
  return node != 0 && scenario_.job.mode == RecordMode::kSynchronous;
}

void World::NoteLost(const SimProcess* process) {
  if (process != nullptr && process->alive) rules_.NoteLost(*process);
}

void World::Kill(SimProcess* process) {
  if (!process->alive) return;
  process->alive = false;
  rules_.NoteEnd(process->group);
  network_.Forget(process);
  scheduler_.Kill(process->group);
}

void World::At(SimProcess* process, const SimPoint& point) {
  if (IsReplaced(process)) return scheduler_.Pause();
  const int64_t operation = ++operations_[process->node];
  for (const SimFault& fault : scenario_.faults) {
    if (fault.kind != SimFault::Kind::kKillAt || fault.node != process->node) continue;
    if (fault.operation == operation) Begin(fault);
  }
  Trigger(process->node, point);
}

void World::Trigger(size_t node, const SimPoint& point) {
  bool any = false;
  for (size_t i = 0; i < scenario_.faults.size(); ++i) {
    const SimFault& fault = scenario_.faults[i];
    if (!fault.trigger.has_value() || fault.trigger->node != node) continue;
    if (fault.trigger->when != point.when || fault.trigger->what != point.what) continue;
    const absl::Duration since = scheduler_.Monotonic() - fault.at;
    if (since < absl::ZeroDuration() || since > kTriggerWindow) continue;
    if (++reached_[i] != fault.trigger->number) continue;
    scheduler_.At(absl::ZeroDuration(), [this, fault] { Begin(fault); });
    any = true;
  }
  // The process gets no further.
  if (any) scheduler_.Pause();
}

// ---- Faults.

void World::Schedule(const SimFault& fault) {
  if (fault.kind == SimFault::Kind::kKillAt || fault.trigger.has_value()) return;
  scheduler_.At(fault.at, [this, fault] { Begin(fault); });
}

void World::Begin(const SimFault& fault) {
  SimProcess* const process = lives_[fault.node];
  scheduler_.At(fault.length, [this, fault, process] {
    if (fault.kind == SimFault::Kind::kFreeze || fault.kind == SimFault::Kind::kReplace) {
      if (process != nullptr) SetPaused(process, false);
    }
    End(fault);
  });
  switch (fault.kind) {
    case SimFault::Kind::kKill:
    case SimFault::Kind::kKillAt:
      if (scenario_.IsServer(fault.node)) rules_.NoteLostServer();
      NoteLost(process);
      if (process != nullptr) Kill(process);
      break;
    case SimFault::Kind::kFreeze:
      if (process != nullptr) SetPaused(process, true);
      break;
    case SimFault::Kind::kReplace:
      if (process == nullptr) break;
      SetPaused(process, true);
      // When it wakes up it may do steps with a shard that its successor does not find.
      if (scenario_.HostsShard(fault.node) && !ReplicasTakeOver(fault.node)) {
        rules_.NoteLostShard();
      }
      // Other hosts are lost when the leader calls their successors.
      if (fault.node == 0) NoteLost(process);
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
    case SimFault::Kind::kSlow:
      network_.SetLate(fault.node, fault.other, fault.length);
      if (fault.both) network_.SetLate(fault.other, fault.node, fault.length);
      break;
    case SimFault::Kind::kLoss:
      network_.SetLoss(0.05);
      break;
    case SimFault::Kind::kStorage:
      disk_.fault = fault.storage;
      disk_.fault_since = scheduler_.Monotonic();
      if (fault.storage != StorageFault::kHangs) rules_.evaluations()->NoteTrouble();
      break;
    case SimFault::Kind::kPowerCut:
      CutPower();
      break;
    case SimFault::Kind::kErase:
      disk_.files.RemoveTree(kModelDir);
      rules_.CheckSnapshots();
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
    case SimFault::Kind::kSlow:
      network_.SetLate(fault.node, fault.other, absl::ZeroDuration());
      network_.SetLate(fault.other, fault.node, absl::ZeroDuration());
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
void World::SetPaused(const SimProcess* process, bool paused) {
  scheduler_.SetPaused(process->group, paused);
  rules_.NotePaused(process->group, paused);
}

void World::AskToStop(SimProcess* process) {
  if (process == nullptr || !process->alive || process->stop == nullptr) return;
  scheduler_.StartIn(process->group, [process] { process->stop->Raise(); });
}

void World::CutPower() {
  for (const auto& process : processes_) {
    NoteLost(process.get());
    Kill(process.get());
  }
  constexpr Unsynced kOutcomes[] = {Unsynced::kLost, Unsynced::kKept, Unsynced::kNamesKept,
                                    Unsynced::kBytesKept, Unsynced::kLastNameKept};
  disk_.files.Restart(kOutcomes[scheduler_.Random() % std::size(kOutcomes)]);
  rules_.NotePowerCut();
}

// ---- Rules.

bool World::AnyWorker() const {
  return std::any_of(lives_.begin(), lives_.end(), [this](const SimProcess* life) {
    return life != nullptr && life->alive && scenario_.Trains(life->node);
  });
}

void World::NoteOutcome(FiberScheduler::Outcome outcome) {
  if (!violation_.empty()) return;
  if (done_) return rules_.CheckEnd();
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
    scheduler_.SetStalls(0, absl::ZeroDuration());
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
