#include "chief/coordination/work_ledger.h"

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "chief/coordination/work_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {

namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::JobState Parse(const std::string& text) {
  v1::JobState state;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &state)) << text;
  return state;
}

// The state without what differs from run to run.
std::string Text(v1::JobState state) {
  EXPECT_NE(state.job_id(), 0u);
  EXPECT_GT(state.state_version(), 0u);
  state.clear_job_id();
  state.clear_state_version();
  return state.DebugString();
}

// All tickets that are left, in the order in which they are handed out.
std::vector<WorkTicket> TakeAll(WorkLedger* ledger) {
  const std::optional<WorkLease> lease = ledger->Acquire(kBob, 1'000'000);
  return lease.has_value() ? lease->tickets : std::vector<WorkTicket>();
}

TEST(WorkLedgerTest, WalksThroughTheEpochs) {
  WorkLedger ledger({.max_steps = 5, .num_records = 10, .batch_size = 4});
  EXPECT_THAT(ledger.Acquire(kAlice, 2)->tickets,
              ElementsAre(WorkTicket{0, 0, 0, 4}, WorkTicket{1, 0, 4, 8}));
  EXPECT_FALSE(ledger.AllHandedOut());
  EXPECT_THAT(ledger.Acquire(kBob, 9)->tickets,
              ElementsAre(WorkTicket{2, 0, 8, 10}, WorkTicket{3, 1, 0, 4}, WorkTicket{4, 1, 4, 8}));
  EXPECT_TRUE(ledger.AllHandedOut());
  EXPECT_EQ(ledger.Acquire(kAlice, 1), std::nullopt);
  EXPECT_FALSE(ledger.Done());
}

TEST(WorkLedgerTest, ABatchLargerThanTheDataIsAnEpoch) {
  WorkLedger ledger({.max_steps = 2, .num_records = 10, .batch_size = 64});
  EXPECT_THAT(TakeAll(&ledger), ElementsAre(WorkTicket{0, 0, 0, 10}, WorkTicket{1, 1, 0, 10}));
}

TEST(WorkLedgerTest, NobodyGetsNothing) {
  WorkLedger ledger({.max_steps = 2, .num_records = 10, .batch_size = 5});
  EXPECT_EQ(ledger.Acquire(kAlice, 0), std::nullopt);
  EXPECT_EQ(ledger.Acquire(kAlice, -1), std::nullopt);
  WorkLedger empty({.max_steps = 0, .num_records = 10, .batch_size = 5});
  EXPECT_EQ(empty.Acquire(kAlice, 1), std::nullopt);
  EXPECT_TRUE(empty.Done());
}

TEST(WorkLedgerTest, CompletesInOrderToTheEnd) {
  WorkLedger ledger({.max_steps = 3, .num_records = 10, .batch_size = 5});
  const uint64_t id = ledger.Acquire(kAlice, 3)->id;
  EXPECT_EQ(ledger.Complete(kAlice, id, 0), absl::OkStatus());
  EXPECT_EQ(ledger.completed_steps(), 0);
  EXPECT_EQ(ledger.Complete(kAlice, id, 1), absl::OkStatus());
  EXPECT_EQ(ledger.completed_steps(), 1);
  EXPECT_DOUBLE_EQ(ledger.epochs_completed(), 0.5);
  EXPECT_FALSE(ledger.Done());
  EXPECT_EQ(ledger.Complete(kAlice, id, 3), absl::OkStatus());
  EXPECT_EQ(ledger.completed_steps(), 3);
  EXPECT_DOUBLE_EQ(ledger.epochs_completed(), 1.5);
  EXPECT_TRUE(ledger.Done());
}

TEST(WorkLedgerTest, RepeatedAndLateReportsAreHarmless) {
  WorkLedger ledger({.max_steps = 9, .num_records = 10, .batch_size = 5});
  const uint64_t id = ledger.Acquire(kAlice, 3)->id;
  for (const int64_t completed : {2, 2, 1, 3, 3, 2}) {
    EXPECT_EQ(ledger.Complete(kAlice, id, completed), absl::OkStatus());
  }
  EXPECT_EQ(ledger.completed_steps(), 3);
}

TEST(WorkLedgerTest, CompleteChecksTheCount) {
  WorkLedger ledger({.max_steps = 9, .num_records = 10, .batch_size = 5});
  const uint64_t id = ledger.Acquire(kAlice, 2)->id;
  EXPECT_EQ(ledger.Complete(kAlice, id, 3),
            absl::InvalidArgumentError("work lease 1: completed: expected [0, 2], found 3"));
  EXPECT_EQ(ledger.Complete(kAlice, id, -1),
            absl::InvalidArgumentError("work lease 1: completed: expected [0, 2], found -1"));
  EXPECT_EQ(ledger.completed_steps(), 0);
}

TEST(WorkLedgerTest, OnlyTheHolderCompletes) {
  WorkLedger ledger({.max_steps = 9, .num_records = 10, .batch_size = 5});
  const uint64_t id = ledger.Acquire(kAlice, 2)->id;
  EXPECT_EQ(ledger.Complete(kBob, id, 1),
            absl::AbortedError("work lease 1 is not held by the caller"));
  EXPECT_EQ(ledger.Complete(kBob, id + 1, 1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ledger.Complete(kBob, 0, 1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ledger.completed_steps(), 0);
}

TEST(WorkLedgerTest, LeasesOfAPredecessorAreRefused) {
  WorkLedger ledger(
      {.max_steps = 9, .num_records = 10, .batch_size = 5, .first_lease_id = 1'000'000});
  EXPECT_EQ(ledger.Acquire(kAlice, 1)->id, 1'000'000u);
  EXPECT_EQ(ledger.Complete(kAlice, 3, 1).code(), absl::StatusCode::kAborted);
}

TEST(WorkLedgerTest, ReleasedTicketsAreHandedOutFirst) {
  WorkLedger ledger({.max_steps = 9, .num_records = 100, .batch_size = 10});
  const uint64_t first = ledger.Acquire(kAlice, 3)->id;
  const uint64_t bobs = ledger.Acquire(kBob, 1)->id;
  const uint64_t second = ledger.Acquire(kAlice, 1)->id;
  ASSERT_EQ(ledger.Complete(kAlice, first, 1), absl::OkStatus());
  EXPECT_EQ(ledger.Release(kAlice), 3);
  EXPECT_EQ(ledger.Release(kAlice), 0);
  EXPECT_EQ(ledger.completed_steps(), 1);
  EXPECT_EQ(ledger.Complete(kAlice, first, 3).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ledger.Complete(kAlice, second, 1).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ledger.Complete(kBob, bobs, 1), absl::OkStatus());
  EXPECT_THAT(ledger.Acquire(kBob, 4)->tickets,
              ElementsAre(WorkTicket{1, 0, 10, 20}, WorkTicket{2, 0, 20, 30},
                          WorkTicket{4, 0, 40, 50}, WorkTicket{5, 0, 50, 60}));
}

TEST(WorkLedgerTest, AReleaseReopensTheLastSteps) {
  WorkLedger ledger({.max_steps = 2, .num_records = 10, .batch_size = 5});
  ASSERT_EQ(TakeAll(&ledger).size(), 2u);
  EXPECT_TRUE(ledger.AllHandedOut());
  EXPECT_EQ(ledger.Release(kBob), 2);
  EXPECT_FALSE(ledger.AllHandedOut());
  EXPECT_EQ(ledger.Acquire(kAlice, 9)->tickets.size(), 2u);
}

TEST(WorkLedgerTest, StepsFor) {
  EXPECT_EQ(WorkPool::StepsFor(3, 100, 10), 30);
  EXPECT_EQ(WorkPool::StepsFor(3, 101, 10), 33);
  EXPECT_EQ(WorkPool::StepsFor(3, 5, 10), 3);
  WorkLedger ledger({WorkPool::StepsFor(2, 101, 10), 101, 10});
  const std::vector<WorkTicket> tickets = TakeAll(&ledger);
  EXPECT_EQ(tickets.back(), (WorkTicket{21, 1, 100, 101}));
  EXPECT_EQ(ledger.Complete(kBob, 1, 22), absl::OkStatus());
  EXPECT_DOUBLE_EQ(ledger.epochs_completed(), 2);
}

// Takes rounds of so many batches until the ledger is done, or `most` of them; counts each use of a
// record of any epoch.
void TakeRounds(int64_t batches, int64_t most, WorkLedger* ledger, std::vector<int>* uses) {
  for (int64_t round = 0; round < most && !ledger->Done(); ++round) {
    const std::vector<RecordRange> records = ledger->OpenRound(batches);
    for (const RecordRange& range : records) {
      for (int64_t r = range.begin; r < range.end; ++r) ++(*uses)[static_cast<size_t>(r)];
    }
    ledger->CompleteRound(records);
  }
}

TEST(WorkLedgerEpochsTest, AJobThatBeginsHasTheStepsOfItsEpochs) {
  WorkOptions options = {.max_steps = 1, .num_records = 101, .batch_size = 10, .epochs = 2};
  WorkLedger ledger(options);
  ledger.CountSteps(1);
  EXPECT_EQ(ledger.options().max_steps, WorkPool::StepsFor(2, 101, 10));
  ledger.CountSteps(3);
  EXPECT_EQ(ledger.options().max_steps, WorkPool::StepsFor(2, 101, 30));
}

TEST(WorkLedgerEpochsTest, StepsOfAnotherSizeTakeWhatIsLeft) {
  for (const int64_t before : {1, 2, 3, 4}) {
    for (const int64_t after : {1, 2, 3, 4}) {
      for (const int64_t taken : {0, 1, 4, 7}) {
        WorkOptions options = {.max_steps = 1, .num_records = 105, .batch_size = 10, .epochs = 3};
        std::vector<int> uses(105);
        WorkLedger first(options);
        first.CountSteps(before);
        TakeRounds(before, taken, &first, &uses);
        WorkLedger second = *WorkLedger::FromState(first.ToState(), options);
        second.CountSteps(after);
        TakeRounds(after, 1000, &second, &uses);
        EXPECT_THAT(uses, Each(3)) << before << " batches, then " << after << ", at " << taken;
        EXPECT_EQ(second.completed_steps(), second.options().max_steps);
      }
    }
  }
}

TEST(WorkLedgerEpochsTest, WhatIsOutOrCameBackTakesStepsToo) {
  WorkLedger ledger({.max_steps = 1, .num_records = 100, .batch_size = 10, .epochs = 2});
  ledger.CountSteps(1);
  ASSERT_TRUE(ledger.Acquire(kAlice, 3).has_value());
  ASSERT_TRUE(ledger.Acquire(kBob, 2).has_value());
  ASSERT_EQ(ledger.Release(kAlice), 3);
  ledger.CountSteps(1);
  EXPECT_EQ(ledger.options().max_steps, 20);
  // Bob's two, three that came back with one more, four of this epoch and ten.
  ledger.CountSteps(2);
  EXPECT_EQ(ledger.options().max_steps, 2 + 2 + 2 + 5);
}

TEST(WorkLedgerEpochsTest, EpochsThatAreOverTakeNoStep) {
  WorkOptions options = {.max_steps = 1, .num_records = 100, .batch_size = 10, .epochs = 1};
  std::vector<int> uses(100);
  WorkLedger ledger(options);
  ledger.CountSteps(2);
  TakeRounds(2, 100, &ledger, &uses);
  WorkLedger next = *WorkLedger::FromState(ledger.ToState(), options);
  next.CountSteps(1);
  EXPECT_TRUE(next.Done());
  EXPECT_EQ(next.options().max_steps, 5);
  options.epochs = 2;
  WorkLedger longer = *WorkLedger::FromState(ledger.ToState(), options);
  longer.CountSteps(1);
  EXPECT_EQ(longer.options().max_steps, 15);
}

TEST(WorkLedgerStateTest, TellsWhereTheJobStands) {
  WorkLedger ledger({.max_steps = 9, .num_records = 25, .batch_size = 10});
  const uint64_t id = ledger.Acquire(kAlice, 3)->id;
  ASSERT_TRUE(ledger.Acquire(kBob, 2).has_value());
  ASSERT_EQ(ledger.Complete(kAlice, id, 1), absl::OkStatus());
  ASSERT_EQ(ledger.Release(kAlice), 2);
  EXPECT_EQ(Text(ledger.ToState()), Parse(R"pb(
                                      global_step: 1
                                      next_epoch: 1
                                      next_position: 20
                                      unfinished { epoch: 0 begin: 10 end: 20 }
                                      unfinished { epoch: 0 begin: 20 end: 25 }
                                      unfinished { epoch: 1 begin: 0 end: 10 }
                                      unfinished { epoch: 1 begin: 10 end: 20 }
                                      batch_size: 10
                                      num_records: 25
                                    )pb")
                                        .DebugString());
}

constexpr char kState[] = R"pb(
  global_step: 7
  next_epoch: 2
  next_position: 20
  unfinished { epoch: 1 begin: 20 end: 25 }
  unfinished { epoch: 2 begin: 0 end: 10 }
  batch_size: 10
  num_records: 25
)pb";

TEST(WorkLedgerStateTest, UnfinishedRangesAreHandedOutFirst) {
  WorkLedger ledger = WorkLedger::FromState(Parse(kState), {12, 25, 10}).value();
  EXPECT_EQ(ledger.completed_steps(), 7);
  EXPECT_DOUBLE_EQ(ledger.epochs_completed(), 2 + 5.0 / 25);
  EXPECT_EQ(Text(ledger.ToState()), Parse(kState).DebugString());
  EXPECT_THAT(TakeAll(&ledger), ElementsAre(WorkTicket{7, 1, 20, 25}, WorkTicket{8, 2, 0, 10},
                                            WorkTicket{9, 2, 20, 25}, WorkTicket{10, 3, 0, 10},
                                            WorkTicket{11, 3, 10, 20}));
}

TEST(WorkLedgerStateTest, AnEmptyStateIsANewJob) {
  WorkLedger ledger = WorkLedger::FromState(v1::JobState(), {2, 25, 10}).value();
  EXPECT_THAT(TakeAll(&ledger), ElementsAre(WorkTicket{0, 0, 0, 10}, WorkTicket{1, 0, 10, 20}));
}

TEST(WorkLedgerStateTest, ANewBatchSizeGoesOnAtTheSamePlace) {
  WorkLedger smaller = WorkLedger::FromState(Parse(kState), {13, 25, 6}).value();
  EXPECT_THAT(TakeAll(&smaller), ElementsAre(WorkTicket{7, 1, 20, 25}, WorkTicket{8, 2, 0, 6},
                                             WorkTicket{9, 2, 6, 10}, WorkTicket{10, 2, 20, 25},
                                             WorkTicket{11, 3, 0, 6}, WorkTicket{12, 3, 6, 12}));
  WorkLedger larger = WorkLedger::FromState(Parse(kState), {11, 25, 100}).value();
  EXPECT_THAT(TakeAll(&larger), ElementsAre(WorkTicket{7, 1, 20, 25}, WorkTicket{8, 2, 0, 10},
                                            WorkTicket{9, 2, 20, 25}, WorkTicket{10, 3, 0, 25}));
}

TEST(WorkLedgerStateTest, OtherDataGoesOnAtTheNextEpoch) {
  WorkLedger ledger = WorkLedger::FromState(Parse(kState), {9, 30, 10}).value();
  EXPECT_DOUBLE_EQ(ledger.epochs_completed(), 3);
  EXPECT_THAT(TakeAll(&ledger), ElementsAre(WorkTicket{7, 3, 0, 10}, WorkTicket{8, 3, 10, 20}));
  v1::JobState between = Parse(kState);
  between.set_next_position(0);
  between.clear_unfinished();
  WorkLedger at_boundary = WorkLedger::FromState(between, {8, 30, 10}).value();
  EXPECT_THAT(TakeAll(&at_boundary), ElementsAre(WorkTicket{7, 2, 0, 10}));
}

TEST(WorkLedgerStateTest, FewerStepsHandOutWhatFits) {
  WorkLedger ledger = WorkLedger::FromState(Parse(kState), {8, 25, 10}).value();
  EXPECT_THAT(TakeAll(&ledger), ElementsAre(WorkTicket{7, 1, 20, 25}));
  EXPECT_EQ(ledger.Complete(kBob, 1, 1), absl::OkStatus());
  EXPECT_TRUE(ledger.Done());
}

TEST(WorkLedgerStateTest, AJobPastItsEndIsDone) {
  for (const int64_t max_steps : {7, 5, 0}) {
    WorkLedger ledger = WorkLedger::FromState(Parse(kState), {max_steps, 25, 10}).value();
    EXPECT_TRUE(ledger.Done());
    EXPECT_TRUE(ledger.AllHandedOut());
    EXPECT_THAT(TakeAll(&ledger), IsEmpty());
    EXPECT_EQ(ledger.ToState().global_step(), 7);
  }
}

TEST(WorkLedgerStateTest, DamageIsNamed) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"global_step: -1", "global_step: expected >= 0, found -1"},
      {"num_records: -1", "num_records: expected >= 0, found -1"},
      {"next_epoch: -1", "next_epoch: expected >= 0, found -1"},
      {"next_position: 1", "next_position: expected [0, 1), found 1"},
      {"num_records: 25 next_position: 25", "next_position: expected [0, 25), found 25"},
      {"num_records: 25 next_position: -1", "next_position: expected [0, 25), found -1"},
      {"num_records: 25 unfinished { epoch: 1 begin: 0 end: 5 }",
       "unfinished[0].epoch: expected [0, 0], found 1"},
      {"num_records: 25 unfinished { epoch: -1 begin: 0 end: 5 }",
       "unfinished[0].epoch: expected [0, 0], found -1"},
      {"num_records: 25 next_position: 5 unfinished { begin: 0 end: 6 }",
       "unfinished[0].end: expected <= 5, found 6"},
      {"num_records: 25 next_epoch: 1 unfinished { begin: 0 end: 26 }",
       "unfinished[0].end: expected <= 25, found 26"},
      {"num_records: 25 next_epoch: 1 unfinished { begin: 3 end: 3 }",
       "unfinished[0].begin: expected [0, 3), found 3"},
      {"num_records: 25 next_epoch: 1 unfinished { begin: -1 end: 3 }",
       "unfinished[0].begin: expected [0, 3), found -1"},
      {"num_records: 25 next_epoch: 1 unfinished { begin: 5 end: 9 } "
       "unfinished { begin: 0 end: 6 }",
       "unfinished: expected ranges without overlap, found epoch 0 position 5 twice"},
  };
  for (const auto& [state, error] : kErrors) {
    EXPECT_EQ(WorkLedger::FromState(Parse(state), {10, 25, 5}).status(),
              absl::DataLossError(std::string("_keelson/job: ") + error))
        << state;
  }
}

// Many workers that acquire, report, vanish and see the chief restart, in random order.
class RandomJob {
 public:
  RandomJob(uint32_t seed, bool lossy)
      : random_(seed),
        lossy_(lossy),
        options_{.max_steps = Draw(1, 60), .num_records = Draw(1, 40), .batch_size = Draw(1, 12)},
        now_{WorkLedger(options_), {}},
        saved_(now_) {}

  void RunToTheEnd() {
    while (!now_.ledger.Done()) {
      Act();
      CheckInvariants();
      if (testing::Test::HasFailure()) return;
    }
    CheckEnd();
  }

 private:
  struct Held {
    uint64_t worker = 0;
    WorkLease lease;
    int64_t completed = 0;
  };
  using Position = std::pair<int64_t, int64_t>;  // epoch, record
  // A ledger and the records whose steps it counts as done.
  struct Timeline {
    WorkLedger ledger;
    std::map<Position, int> trained;
  };

  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  void Act() {
    const int64_t choice = Draw(0, 99);
    if (choice < 40) return Acquire();
    if (choice < 90 || !lossy_) return Complete();
    if (choice < 96) return Release();
    if (choice < 98) return Save();
    Restore();
  }

  void Acquire() {
    const uint64_t worker = static_cast<uint64_t>(Draw(1, 5));
    const bool all_out = now_.ledger.AllHandedOut();
    const std::optional<WorkLease> lease = now_.ledger.Acquire(worker, Draw(1, 4));
    EXPECT_EQ(lease.has_value(), !all_out);
    if (lease.has_value()) held_.push_back({worker, *lease, 0});
  }

  void Complete() {
    if (held_.empty()) return;
    const size_t i = Draw(0, static_cast<int64_t>(held_.size()) - 1);
    Held& held = held_[i];
    const int64_t size = static_cast<int64_t>(held.lease.tickets.size());
    const int64_t target = Draw(held.completed, size);
    EXPECT_EQ(now_.ledger.Complete(held.worker, held.lease.id, target), absl::OkStatus());
    for (; held.completed < target; ++held.completed) {
      Train(held.lease.tickets[held.completed]);
    }
    if (held.completed == size) held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void Train(const WorkTicket& ticket) {
    for (int64_t record = ticket.begin; record < ticket.end; ++record) {
      ++now_.trained[{ticket.epoch, record}];
      ++ever_trained_[{ticket.epoch, record}];
    }
  }

  void Release() {
    const uint64_t worker = static_cast<uint64_t>(Draw(1, 5));
    int64_t unfinished = 0;
    for (size_t i = 0; i < held_.size();) {
      if (held_[i].worker != worker) {
        ++i;
        continue;
      }
      unfinished += static_cast<int64_t>(held_[i].lease.tickets.size()) - held_[i].completed;
      stale_.push_back(held_[i]);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    EXPECT_EQ(now_.ledger.Release(worker), unfinished);
    for (const Held& stale : stale_) {
      EXPECT_EQ(now_.ledger.Complete(stale.worker, stale.lease.id, 1).code(),
                absl::StatusCode::kAborted);
    }
  }

  void Save() { saved_ = now_; }

  void Restore() {
    now_.trained = saved_.trained;
    options_.first_lease_id += 1000;
    auto ledger = WorkLedger::FromState(saved_.ledger.ToState(), options_);
    ASSERT_EQ(ledger.status(), absl::OkStatus());
    now_.ledger = *std::move(ledger);
    for (const Held& held : held_) {
      stale_.push_back(held);
      EXPECT_EQ(now_.ledger.Complete(held.worker, held.lease.id, 1).code(),
                absl::StatusCode::kAborted);
    }
    held_.clear();
  }

  // What is done and what is unfinished are disjoint, and together all that lies before the cursor.
  void CheckInvariants() {
    const v1::JobState state = now_.ledger.ToState();
    EXPECT_LE(state.global_step() + state.unfinished_size(), options_.max_steps);
    std::map<Position, int> seen = now_.trained;
    for (const v1::JobState::Range& range : state.unfinished()) {
      EXPECT_LE(range.end() - range.begin(), options_.batch_size);
      for (int64_t i = range.begin(); i < range.end(); ++i) ++seen[{range.epoch(), i}];
    }
    for (const auto& [position, count] : seen) EXPECT_EQ(count, 1);
    const int64_t before = state.next_epoch() * options_.num_records + state.next_position();
    EXPECT_EQ(static_cast<int64_t>(seen.size()), before);
    EXPECT_NEAR(
        now_.ledger.epochs_completed(),
        static_cast<double>(now_.trained.size()) / static_cast<double>(options_.num_records), 1e-9);
  }

  void CheckEnd() {
    EXPECT_EQ(now_.ledger.completed_steps(), options_.max_steps);
    EXPECT_TRUE(now_.ledger.AllHandedOut());
    EXPECT_EQ(now_.ledger.ToState().unfinished_size(), 0);
    const v1::JobState state = now_.ledger.ToState();
    const int64_t total = state.next_epoch() * options_.num_records + state.next_position();
    EXPECT_EQ(static_cast<int64_t>(now_.trained.size()), total);
    for (const auto& [position, count] : now_.trained) {
      EXPECT_EQ(count, 1);
      EXPECT_GE(ever_trained_[position], 1);
      if (!lossy_) {
        EXPECT_EQ(ever_trained_[position], 1);
      }
    }
  }

  std::mt19937 random_;
  const bool lossy_;
  WorkOptions options_;
  Timeline now_, saved_;
  std::vector<Held> held_, stale_;
  std::map<Position, int> ever_trained_;
};

TEST(WorkLedgerRandomTest, EveryRecordOnceWhenNobodyIsLost) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob(seed, /*lossy=*/false).RunToTheEnd();
    if (HasFailure()) return;
  }
}

TEST(WorkLedgerRandomTest, ExactStepsAcrossLossesAndRestarts) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob(seed, /*lossy=*/true).RunToTheEnd();
    if (HasFailure()) return;
  }
}

// A week of workers that live for an hour: each leaves an unfinished lease behind.
TEST(WorkLedgerTest, LeasesThatWereTakenBackAreForgottenInTheEnd) {
  WorkLedger ledger({.max_steps = 1'000'000, .num_records = 1000, .batch_size = 10});
  const uint64_t complete = ledger.Acquire(kAlice, 1)->id;
  ASSERT_TRUE(ledger.Complete(kAlice, complete, 1).ok());
  const uint64_t first = ledger.Acquire(kBob, 1)->id;
  uint64_t newest = first;
  for (size_t i = 0; i < 2 * LeaseBook::kMostTakenBack; ++i) {
    EXPECT_EQ(ledger.Release(kBob), 1);
    newest = ledger.Acquire(kBob, 1)->id;
  }
  EXPECT_EQ(ledger.taken_back(), LeaseBook::kMostTakenBack);
  EXPECT_EQ(ledger.completed_steps(), 1);
  // What was taken back counts for nobody, remembered or not.
  EXPECT_TRUE(absl::IsAborted(ledger.Complete(kBob, first, 1)));
  EXPECT_TRUE(absl::IsAborted(ledger.Complete(kBob, newest - 1, 1)));
  EXPECT_TRUE(ledger.Complete(kBob, newest, 1).ok());
  EXPECT_TRUE(ledger.Complete(kBob, newest, 1).ok());  // a repetition
  EXPECT_EQ(ledger.completed_steps(), 2);
}

}  // namespace
}  // namespace keelson
