// The fixtures of the tests of the coordinator's faces.
#ifndef KEELSON_CHIEF_COORDINATION_COORDINATOR_FIXTURES_TESTING_H_
#define KEELSON_CHIEF_COORDINATION_COORDINATOR_FIXTURES_TESTING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/coordination/coordinator.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "chief/coordination/work_ledger.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/cluster/consistency.h"
#include "gtest/gtest.h"

namespace keelson {

// A coordinator and its workers, on a clock that the test moves.
class CoordinatorTest : public testing::Test {
 protected:
  void StartTraining(int64_t max_steps) {
    WorkOptions work;
    work.max_steps = max_steps;
    work.num_records = 1000;
    work.batch_size = 10;
    coordinator_.start()->StartTraining({Placement(), {"ps-0:1"}}, WorkLedger(work));
  }
  void Register(Task task, uint64_t incarnation) {
    ASSERT_EQ(coordinator_.members()->Register(task, TestId(incarnation), kHash, "host:1").status(),
              absl::OkStatus());
  }
  // A lease, or none.
  std::optional<WorkLease> Acquire(Task task, uint64_t incarnation, const WorkerReport& report = {},
                                   absl::Duration max_wait = kNoWait, uint64_t sequence = 0) {
    const auto lease =
        coordinator_.requests()->AcquireWork(task, TestId(incarnation), report, max_wait, sequence);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *lease : std::nullopt;
  }
  // Lets the leases of all members pass, retires them at the servers, and hands their work on.
  void LoseEveryone() {
    clock_.Advance(kLease);
    coordinator_.roster()->ExpireLeases();
    coordinator_.roster()->HandOn(coordinator_.roster()->TakeEnded());
  }
  Member::State StateOf(Task task) {
    for (const Member& member : coordinator_.reports()->GetStatus().members) {
      if (member.task == task) return member.state;
    }
    ADD_FAILURE() << task.ToString() << " is no member";
    return Member::kLeft;
  }

  ManualClock clock_;
  Coordinator coordinator_{{kHash, kLease}, &clock_};
  StopSignal stop_;
};

// One chief after the other, on one clock.
class SuccessionTest : public testing::Test {
 protected:
  static constexpr Task kEvaluator = {Role::kEvaluator, 0};

  SuccessionTest() { NewChief(); }

  static WorkOptions Work(uint64_t first_lease_id) { return {40, 1000, 10, first_lease_id, 77}; }
  void NewChief() {
    Coordinator::Options options;
    options.config_hash = kHash;
    options.lease = kLease;
    options.mode = mode_;
    chief_.emplace(options, &clock_);
    first_lease_id_ += 1'000'000;
  }
  void StartTraining() { chief_->start()->StartTraining({}, WorkLedger(Work(first_lease_id_))); }
  // The chief crashes; another one continues from the job state persisted at the servers.
  void Succeed(const v1::PersistedJobState& persisted) {
    NewChief();
    Resume(persisted);
  }
  void Resume(const v1::PersistedJobState& persisted) {
    auto ledger = WorkLedger::FromPersisted(persisted, Work(first_lease_id_));
    ASSERT_EQ(ledger.status(), absl::OkStatus());
    chief_->start()->Resume({Placement(), {"ps-0:1"}}, *std::move(ledger), persisted);
  }
  // As one that was told an epoch when it was a member, if it was one.
  absl::StatusOr<std::vector<uint64_t>> Register(Task task, uint64_t incarnation,
                                                 const std::vector<HeldLease>& held = {}) {
    auto kept = chief_->members()->Register(task, TestId(incarnation), kHash, "host:1", held, "",
                                            told_[incarnation]);
    if (kept.ok()) told_[incarnation] = chief_->roster()->MemberList().epoch();
    return kept;
  }
  std::optional<WorkLease> Acquire(Task task, uint64_t incarnation,
                                   const WorkerReport& report = {}) {
    const auto lease = chief_->requests()->AcquireWork(task, TestId(incarnation), report, kNoWait);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *lease : std::nullopt;
  }
  // Grants and completes single tickets until the worker's lease has `size` of them.
  WorkLease AcquireSome(Task task, uint64_t incarnation, size_t size) {
    std::optional<WorkLease> lease = Acquire(task, incarnation);
    while (lease.has_value() && lease->tickets.size() < size) {
      lease = Acquire(task, incarnation,
                      Completed(lease->id, static_cast<int64_t>(lease->tickets.size())));
    }
    EXPECT_TRUE(lease.has_value());
    return lease.value_or(WorkLease());
  }
  static HeldLease Held(const WorkLease& lease, int64_t completed) {
    return {lease.id, lease.tickets, completed, lease.attempt};
  }
  int64_t step() { return chief_->reports()->GetStatus().step; }

  ConsistencyMode mode_;
  ManualClock clock_;
  uint64_t first_lease_id_ = 0;
  std::optional<Coordinator> chief_;
  std::map<uint64_t, uint64_t> told_;  // epochs, by incarnation
};

// Two workers whose gradients are summed.
class SyncCoordinatorTest : public SuccessionTest {
 protected:
  SyncCoordinatorTest() {
    mode_ = ConsistencyMode::Parse("sync:2").value();
    NewChief();
    StartTraining();
    EXPECT_TRUE(Register(kWorker0, 1).ok());
    EXPECT_TRUE(Register(kWorker1, 2).ok());
  }
  void Stage(Task task, uint64_t incarnation, const WorkLease& lease) {
    ASSERT_EQ(chief_->members()->Heartbeat(task, TestId(incarnation), Completed(lease.id, 1)),
              absl::OkStatus());
  }
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_COORDINATOR_FIXTURES_TESTING_H_
