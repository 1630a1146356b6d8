// A job under random misfortune: workers die, freeze and wake, answers get lost, servers forget
// open rounds, chiefs die and are followed by others with an older persisted state, the mode is
// changed. Everything is a model but the coordinator.
#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <utility>

#include "chief/coordination/coordinator.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr int kWorkers = 3;

// All servers as one: they get the same calls, and a push reaches all of them or none.
class Servers {
 public:
  enum Answer { kApplied, kRefused, kMembershipOver };

  Answer Push(uint64_t incarnation, const RecordRange& records) {
    if (!IsMember(incarnation)) return kMembershipOver;
    Train(records);
    return kApplied;
  }
  Answer Stage(uint64_t incarnation, int64_t round, uint32_t attempt, const RecordRange& records) {
    if (!IsMember(incarnation)) return kMembershipOver;
    if (round <= committed_ || std::pair(attempt, round) < open_) return kRefused;
    if (std::pair(attempt, round) > open_) staged_.clear();
    open_ = {attempt, round};
    staged_.push_back(records);
    return kApplied;
  }
  // False: the round has not its contributions.
  bool Commit(const RoundQueue::Round& round) {
    if (round.step <= committed_) return true;
    if (open_ != std::pair(round.attempt, round.step)) return false;
    if (staged_.size() != round.contributions) return false;
    for (const RecordRange& records : staged_) Train(records);
    staged_.clear();
    committed_ = round.step;
    return true;
  }
  // As a restarted server.
  void ForgetOpenRound() { staged_.clear(); }
  void Announce(const v1::MemberList& members) {
    member_epoch_ = members.epoch();
    members_.clear();
    for (const auto& member : members.members()) members_.insert(member.incarnation());
  }
  void Store(v1::PersistedJobState persisted) { persisted_ = std::move(persisted); }

  bool IsMember(uint64_t incarnation) const { return members_.contains(incarnation); }
  const v1::PersistedJobState& persisted() const { return persisted_; }
  int64_t committed() const { return committed_; }
  uint32_t open_attempt() const { return open_.first; }
  uint64_t member_epoch() const { return member_epoch_; }
  bool Trained(int64_t epoch, int64_t position) const {
    return trained_.contains({epoch, position});
  }

 private:
  void Train(const RecordRange& records) {
    for (int64_t p = records.begin; p < records.end; ++p) trained_.insert({records.epoch, p});
  }

  std::set<uint64_t> members_;
  uint64_t member_epoch_ = 0;
  v1::PersistedJobState persisted_;
  std::set<std::pair<int64_t, int64_t>> trained_;
  std::vector<RecordRange> staged_;
  std::pair<uint32_t, int64_t> open_ = {0, -1};
  int64_t committed_ = -1;
};

struct Worker {
  // A lease that is done, until the servers know; see StateVersions.
  struct Finished {
    HeldLease lease;
    std::optional<uint64_t> version;
  };

  Task task;
  uint64_t incarnation = 0;
  uint64_t told_epoch = 0;
  bool registered = false;  // as far as it knows
  bool frozen = false;
  uint64_t sequence = 0;
  bool asked = false;  // the request with this sequence was not answered
  std::deque<std::pair<HeldLease, WorkLease>> held = {};
  std::vector<Finished> finished = {};
};

class Job {
 public:
  explicit Job(uint32_t seed) : random_(seed) {
    work_ = {Draw(20, 60), Draw(30, 80), Draw(3, 9), 1, 77};
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back({{Role::kWorker, i}, next_incarnation_++});
    }
    configured_ = DrawMode();
    NewChief();
    chief_->start()->StartTraining({}, WorkLedger(work_));
    Store();
  }

  void Run() {
    for (int i = 0; i < 600 && !Done(); ++i) {
      Act(/*faults=*/true);
      Check();
      if (testing::Test::HasFailure()) return;
    }
    for (Worker& worker : workers_) worker.frozen = false;
    for (int i = 0; i < 20000 && !Done(); ++i) {
      Act(/*faults=*/false);
      Check();
      if (testing::Test::HasFailure()) return;
    }
    CheckEnd();
  }

 private:
  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool OneIn(int64_t n) { return Draw(1, n) == 1; }
  bool Done() { return step() >= work_.max_steps; }
  int64_t step() const { return chief_->reports()->GetStatus().step; }

  ConsistencyMode DrawMode() {
    static constexpr const char* kModes[] = {"async",  "async",    "ssp:0",    "ssp:2",
                                             "sync:2", "sync:1/3", "sync:2/3", "sync:4"};
    return ConsistencyMode::Parse(kModes[Draw(0, 7)]).value();
  }

  void NewChief() {
    Coordinator::Options options;
    options.mode = configured_;
    options.max_tickets_per_lease = 4;
    options.work_per_lease = absl::Minutes(1);
    chief_.emplace(options, &clock_);
    work_.first_lease_id += 1'000'000;
  }

  void Act(bool faults) {
    if (faults && OneIn(25)) return Misfortune();
    if (OneIn(8)) return RunMaintenance();
    if (OneIn(4)) return CommitRound(faults);
    Worker& worker = workers_[Draw(0, kWorkers - 1)];
    if (worker.frozen) {
      worker.frozen = !OneIn(60);
    } else if (!worker.registered) {
      Register(&worker);
    } else if (OneIn(3)) {
      Report(&worker);
    } else if (worker.held.empty()) {
      Acquire(&worker, faults);
    } else {
      Train(&worker);
    }
  }

  // ---- The chief.

  void Store() {
    servers_.Store(chief_->persistence()->PersistedState());
    chief_->persistence()->NoteStored(servers_.persisted().job().state_version());
    deaths_since_stored_ = 0;
  }
  // As the chief does it: no server knows of members of whom its job state does not.
  void Announce() {
    servers_.Announce(chief_->roster()->MemberList());
    Store();
  }
  void StoreIfUrgent() {
    if (chief_->persistence()->StateUrgent()) Store();
  }
  void RunMaintenance() {
    clock_.Advance(absl::Milliseconds(Draw(1, 700)));
    chief_->roster()->ExpireLeases();
    const std::vector<uint64_t> ended = chief_->roster()->TakeEnded();
    if (!ended.empty()) {
      NoteDeath();
      Announce();
    }
    if (OneIn(12)) return RestartChief();
    chief_->roster()->HandOn(ended);
    if (OneIn(2)) Store();
  }
  void CommitRound(bool faults) {
    const auto round = chief_->rounds()->WaitForRound(kNoWait);
    if (!round.has_value()) return;
    if (faults && OneIn(10)) servers_.ForgetOpenRound();
    const bool committed = servers_.Commit(*round);
    EXPECT_TRUE(committed || faults) << "round " << round->step;
    if (faults && OneIn(20)) return RestartChief();
    committed ? chief_->rounds()->RoundCommitted(*round) : chief_->rounds()->RoundFailed(*round);
  }
  void RestartChief() {
    const int64_t before = step();
    NewChief();
    auto ledger = WorkLedger::FromPersisted(servers_.persisted(), work_);
    ASSERT_EQ(ledger.status(), absl::OkStatus());
    chief_->start()->RaiseAttempt(servers_.open_attempt());
    chief_->start()->RaiseMemberEpoch(servers_.member_epoch());
    chief_->start()->NoteCommittedRounds(servers_.committed());
    chief_->start()->Resume({}, *std::move(ledger), servers_.persisted());
    for (Worker& worker : workers_) worker.asked = false;
    expected_step_ = std::max(expected_step_, before);
    if (deaths_since_stored_ > 0) expected_step_ = 0;
    Announce();
  }
  void Misfortune() {
    Worker& worker = workers_[Draw(0, kWorkers - 1)];
    switch (Draw(0, 3)) {
      case 0:
        return RestartChief();
      case 1:
        return BecomeNew(&worker);
      case 2:
        worker.frozen = true;
        return;
      default:
        EXPECT_EQ(chief_->control()->SetMode(DrawMode()), absl::OkStatus());
        StoreIfUrgent();
    }
  }

  // ---- A worker.

  // A process that crashes loses what it has done and has not persisted or reported.
  void NoteDeath() {
    ++deaths_since_stored_;
    expected_step_ = 0;
  }
  void BecomeNew(Worker* worker) {
    NoteDeath();
    *worker = {worker->task, next_incarnation_++};
  }
  void Register(Worker* worker) {
    std::vector<HeldLease> claims;
    for (const auto& [lease, grant] : worker->held) claims.push_back(lease);
    for (const Worker::Finished& finished : worker->finished) claims.push_back(finished.lease);
    const auto kept = chief_->members()->Register(worker->task, TestId(worker->incarnation), 0,
                                                  "host:1", claims, "", worker->told_epoch);
    if (kept.status().code() == absl::StatusCode::kAlreadyExists) return;
    if (!kept.ok()) {
      ASSERT_EQ(kept.status().code(), absl::StatusCode::kAborted);
      return BecomeNew(worker);
    }
    Announce();
    worker->told_epoch = servers_.member_epoch();
    worker->registered = true;
    std::erase_if(worker->held, [&](const auto& held) {
      return std::find(kept->begin(), kept->end(), held.first.id) == kept->end();
    });
    NoteVersions(worker);
  }
  void NoteVersions(Worker* worker) {
    const StateVersions state_versions = chief_->persistence()->versions();
    for (Worker::Finished& finished : worker->finished) finished.version = state_versions.current;
    std::erase_if(worker->finished, [&](const Worker::Finished& finished) {
      return state_versions.stored >= *finished.version;
    });
  }
  WorkerReport ReportOf(const Worker& worker) {
    WorkerReport report;
    for (const auto& [lease, grant] : worker.held)
      report.leases.push_back({lease.id, lease.completed});
    for (const Worker::Finished& finished : worker.finished) {
      if (!finished.version.has_value()) {
        report.leases.push_back({finished.lease.id, finished.lease.completed});
      }
    }
    return report;
  }
  void Report(Worker* worker) {
    Answered(worker, chief_->members()->Heartbeat(worker->task, TestId(worker->incarnation),
                                                  ReportOf(*worker)));
  }
  void Answered(Worker* worker, const absl::Status& status) {
    if (!status.ok()) {
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
      worker->registered = false;
      return;
    }
    const StateVersions state_versions = chief_->persistence()->versions();
    for (Worker::Finished& finished : worker->finished) {
      if (!finished.version.has_value()) finished.version = state_versions.current;
    }
    std::erase_if(worker->finished, [&](const Worker::Finished& finished) {
      return state_versions.stored >= *finished.version;
    });
  }
  void Acquire(Worker* worker, bool faults) {
    if (!worker->asked) ++worker->sequence;
    worker->asked = true;
    const auto lease = chief_->requests()->AcquireWork(
        worker->task, TestId(worker->incarnation), ReportOf(*worker), kNoWait, worker->sequence);
    if (faults && OneIn(10)) return;  // the answer is lost
    worker->asked = false;
    Answered(worker, lease.status());
    if (!lease.ok() || !lease->has_value()) return;
    const WorkLease& grant = **lease;
    worker->held.push_back({{grant.id, grant.tickets, 0, grant.attempt}, grant});
  }
  void Train(Worker* worker) {
    auto& [lease, grant] = worker->held.front();
    const WorkTicket& ticket = lease.tickets[lease.completed];
    Servers::Answer answer = Servers::kRefused;
    if (grant.attempt == 0) {
      answer = servers_.Push(worker->incarnation, ticket.records());
    } else {
      if (grant.contested) {
        const auto admitted = chief_->members()->Admit(worker->task, TestId(worker->incarnation),
                                                       grant.id, ticket.step, grant.attempt);
        if (!admitted.ok()) return Answered(worker, admitted.status());
        if (!*admitted) return worker->held.pop_front();
      }
      answer = servers_.Stage(worker->incarnation, ticket.step, grant.attempt, ticket.records());
    }
    if (answer == Servers::kMembershipOver) return BecomeNew(worker);
    if (answer == Servers::kRefused) return worker->held.pop_front();
    ++lease.completed;
    if (lease.completed < static_cast<int64_t>(lease.tickets.size())) return;
    worker->finished.push_back({lease, std::nullopt});
    worker->held.pop_front();
  }

  // ---- What must always hold.

  void Check() {
    const CoordinatorStatus status = chief_->reports()->GetStatus();
    EXPECT_LE(status.step, work_.max_steps);
    // Once everybody is back, nothing that was known is lost.
    const bool all_back =
        std::none_of(status.members.begin(), status.members.end(),
                     [](const Member& member) { return member.state == Member::kAway; });
    if (all_back && deaths_since_stored_ == 0) {
      EXPECT_GE(status.step, expected_step_);
      expected_step_ = status.step;
    }
    // No records with two workers that the servers would both listen to.
    RecordSet held;
    for (const Worker& worker : workers_) {
      if (!servers_.IsMember(worker.incarnation)) continue;
      for (const auto& [lease, grant] : worker.held) {
        if (grant.attempt != 0) continue;
        for (size_t i = lease.completed; i < lease.tickets.size(); ++i) {
          EXPECT_TRUE(held.Add(lease.tickets[i].records()))
              << "step " << lease.tickets[i].step << " is held twice";
        }
      }
    }
  }

  void CheckEnd() {
    ASSERT_EQ(step(), work_.max_steps);
    const v1::JobState state = chief_->persistence()->LedgerState();
    RecordSet unfinished;
    for (const v1::JobState::Range& range : state.unfinished()) {
      EXPECT_TRUE(unfinished.Add({range.epoch(), range.begin(), range.end()}));
    }
    for (int64_t epoch = 0; epoch <= state.next_epoch(); ++epoch) {
      const int64_t end = epoch == state.next_epoch() ? state.next_position() : work_.num_records;
      for (int64_t position = 0; position < end; ++position) {
        if (unfinished.Covers({epoch, position, position + 1})) continue;
        ASSERT_TRUE(servers_.Trained(epoch, position))
            << "epoch " << epoch << " position " << position << " was skipped";
      }
    }
  }

  std::mt19937 random_;
  WorkOptions work_;
  ConsistencyMode configured_;
  ManualClock clock_;
  Servers servers_;
  std::optional<Coordinator> chief_;
  std::vector<Worker> workers_;
  uint64_t next_incarnation_ = 1;
  int deaths_since_stored_ = 0;
  int64_t expected_step_ = 0;
};

TEST(CoordinatorRandomTest, NothingIsLostOrDoneTwice) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Job(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace keelson
