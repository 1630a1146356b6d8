// A job that trains, with fake servers and without a chief's threads, for tests of the parts that
// keep it going.
#ifndef KEELSON_CHIEF_LIFECYCLE_RUNNING_JOB_TESTING_H_
#define KEELSON_CHIEF_LIFECYCLE_RUNNING_JOB_TESTING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/coordination/coordinator.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "chief/lifecycle/job_snapshots.h"
#include "chief/lifecycle/leadership.h"
#include "chief/servers/fake_parameter_server.h"
#include "chief/servers/server_group.h"
#include "chief/servers/shard_storage.h"
#include "chief/servers/snapshotter.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "gtest/gtest.h"

namespace keelson {

// Shows another clock's time, and counts how often it was read. Thread-safe.
class CountingClock : public Clock {
 public:
  explicit CountingClock(const Clock* clock) : clock_(clock) {}

  // `on_read` is called when it has been read `number` times. Before the first time.
  void CallAt(int number, std::function<void()> on_read) {
    called_at_ = number;
    on_read_ = std::move(on_read);
  }

  absl::Time Now() const override { return clock_->Now(); }
  absl::Duration Monotonic() const override {
    const absl::Duration time = clock_->Monotonic();
    if (++reads_ == called_at_) on_read_();
    return time;
  }
  int reads() const { return reads_; }

 private:
  const Clock* const clock_;
  int called_at_ = 0;  // 0: never
  std::function<void()> on_read_;
  mutable std::atomic<int> reads_ = 0;
};

class RunningJobTest : public testing::Test {
 protected:
  // `moving`: ps-1's shard may be served at the first host, too.
  explicit RunningJobTest(const ConsistencyMode& mode = {}, bool moving = false)
      : servers_(GroupOptions(moving), Servers(moving), &storage_, &clock_, &stop_),
        coordinator_(OptionsOf(mode), &clock_) {}

  // The servers are ready, and training of ten steps has begun.
  void SetUp() override {
    servers_.Describe({});
    ASSERT_EQ(servers_.WaitUntilReachable(), absl::OkStatus());
    ASSERT_EQ(servers_.Initialize(std::nullopt, coordinator_.roster()->MemberList()),
              absl::OkStatus());
    coordinator_.start()->StartTraining({Placement(), {"a:1", "b:2"}}, WorkLedger(Work()));
  }

  static WorkOptions Work() {
    WorkOptions work;
    work.max_steps = 10;
    work.num_records = 1000;
    work.batch_size = 10;
    return work;
  }

  void Join(Task task, uint64_t incarnation) {
    ASSERT_EQ(coordinator_.members()->Register(task, TestId(incarnation), kHash, "host:1").status(),
              absl::OkStatus());
  }
  // A lease, or none.
  std::optional<WorkLease> Acquire(Task task, uint64_t incarnation) {
    const auto lease = coordinator_.requests()->AcquireWork(task, TestId(incarnation), {}, kNoWait);
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *lease : std::nullopt;
  }
  // The worker has done all steps of the lease, each with this loss.
  void Finish(Task task, uint64_t incarnation, const WorkLease& lease, double loss = 0.5) {
    const auto steps = static_cast<int64_t>(lease.tickets.size());
    WorkerReport report = Completed(lease.id, steps, steps);
    for (const WorkTicket& ticket : lease.tickets) report.losses.push_back({ticket.step, loss});
    ASSERT_EQ(coordinator_.members()->Heartbeat(task, TestId(incarnation), report),
              absl::OkStatus());
  }
  int64_t step() const { return coordinator_.reports()->GetStatus().step; }

  ManualClock clock_;
  StopSignal stop_;
  Leadership leadership_{nullptr, &stop_};
  FakeParameterServer fakes_[2];
  FakeParameterServer elsewhere_;  // what serves ps-1's shard there
  ServerStorage storage_;
  ServerGroup servers_;
  Coordinator coordinator_;

 private:
  std::vector<ServerGroup::Server> Servers(bool moving) {
    std::vector<ServerGroup::Server> servers = {{"ps-0", "a:1", &fakes_[0]},
                                                {"ps-1", "b:2", &fakes_[1]}};
    if (!moving) return servers;
    elsewhere_.Answer(&ParameterControl::ReplicateShard, [this](const auto&, auto* response) {
      elsewhere_.EditStatus([](v1::ShardStatus* shard) {
        shard->set_state(v1::ShardStatus::READY);
        shard->set_store_id(1000);
      });
      *response->mutable_status() = elsewhere_.shard();
      return absl::OkStatus();
    });
    servers[1].others = {{"ps-1 elsewhere", "a:1", &elsewhere_}};
    return servers;
  }
  static ServerGroup::Options GroupOptions(bool moving) {
    ServerGroup::Options options;
    options.replicas = moving;
    options.header.set_incarnation(1000);
    options.config_hash = FakeParameterServer::kConfigHash;
    return options;
  }
  static Coordinator::Options OptionsOf(const ConsistencyMode& mode) {
    Coordinator::Options options;
    options.config_hash = kHash;
    options.lease = kLease;
    options.mode = mode;
    return options;
  }
};

// A job whose snapshots are written to a directory of its own.
class SavedJobTest : public RunningJobTest {
 protected:
  using RunningJobTest::RunningJobTest;
  void SetUp() override {
    for (FakeParameterServer& fake : fakes_) fake.SetModelDir(directory_.model_dir());
    RunningJobTest::SetUp();
    Join(kWorker0, 1);
  }
  // The steps of a lease, of which the first has one.
  void DoLease() { Finish(kWorker0, 1, *Acquire(kWorker0, 1)); }
  void DoAllSteps() {
    while (step() < Work().max_steps) DoLease();
  }
  std::vector<int64_t> SnapshotSteps() {
    std::vector<int64_t> steps;
    const auto snapshots = directory_.List();
    EXPECT_TRUE(snapshots.ok()) << snapshots.status();
    for (const SnapshotInfo& snapshot : *snapshots) steps.push_back(snapshot.step);
    return steps;
  }

  CheckpointDirectory directory_{FileSystem::Real(), FreshDirectory(), &clock_};
  Snapshotter snapshotter_{&directory_, &servers_, RetentionPolicy{5, 0}, &clock_};
  JobSnapshots snapshots_{&directory_, &snapshotter_, &servers_, &coordinator_, &leadership_};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_RUNNING_JOB_TESTING_H_
