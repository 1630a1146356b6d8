// Tests of the ledger's state when it passes from one chief to the next.
#include <string>
#include <utility>

#include "chief/coordination/work_ledger.h"
#include "chief/coordination/work_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WorkOptions kOptions = {9, 100, 10, 1, 77};

WorkOptions SuccessorsOptions() {
  WorkOptions options = kOptions;
  options.first_lease_id = 1'000'000;
  return options;
}

v1::PersistedJobState PersistedStateOf(const WorkLedger& ledger) {
  v1::PersistedJobState persisted;
  ledger.ToPersisted(&persisted);
  return persisted;
}

WorkLedger SuccessorOf(const v1::PersistedJobState& persisted) {
  auto ledger = WorkLedger::FromPersisted(persisted, SuccessorsOptions());
  EXPECT_EQ(ledger.status(), absl::OkStatus());
  return *std::move(ledger);
}

HeldLease Held(const WorkLease& lease, int64_t completed) {
  return {lease.id, lease.tickets, completed, 0};
}

std::vector<WorkTicket> TakeRest(WorkLedger* ledger) {
  const std::optional<WorkLease> lease = ledger->Acquire(kCarol, 1000);
  return lease.has_value() ? lease->tickets : std::vector<WorkTicket>();
}

TEST(PersistedLedgerTest, LeasesGoOn) {
  WorkLedger first(kOptions);
  const WorkLease alices = *first.Acquire(kAlice, 3);
  const WorkLease bobs = *first.Acquire(kBob, 2);
  ASSERT_EQ(first.Complete(kAlice, alices.id, 1), absl::OkStatus());
  WorkLedger second = SuccessorOf(PersistedStateOf(first));
  EXPECT_EQ(second.completed_steps(), 1);
  EXPECT_DOUBLE_EQ(second.epochs_completed(), 0.1);
  EXPECT_TRUE(second.Confirm(kAlice, Held(alices, 3)));
  EXPECT_EQ(second.completed_steps(), 3);
  EXPECT_FALSE(second.Confirm(kAlice, Held(bobs, 1)));
  EXPECT_TRUE(second.Confirm(kBob, Held(bobs, 1)));
  EXPECT_EQ(second.ReleaseUnconfirmed(kBob), 0);
  EXPECT_EQ(second.Complete(kBob, bobs.id, 2), absl::OkStatus());
  EXPECT_THAT(TakeRest(&second), ElementsAre(WorkTicket{5, 0, 50, 60}, WorkTicket{6, 0, 60, 70},
                                             WorkTicket{7, 0, 70, 80}, WorkTicket{8, 0, 80, 90}));
}

TEST(PersistedLedgerTest, ALeaseThatNeverArrivedComesBack) {
  WorkLedger first(kOptions);
  const WorkLease known = *first.Acquire(kAlice, 1);
  ASSERT_TRUE(first.Acquire(kAlice, 2).has_value());
  WorkLedger second = SuccessorOf(PersistedStateOf(first));
  EXPECT_TRUE(second.Confirm(kAlice, Held(known, 0)));
  EXPECT_EQ(second.ReleaseUnconfirmed(kAlice), 2);
  EXPECT_EQ(second.Acquire(kBob, 1)->tickets[0], (WorkTicket{1, 0, 10, 20}));
  EXPECT_EQ(second.Complete(kAlice, known.id, 1), absl::OkStatus());
}

TEST(PersistedLedgerTest, WhatCameBackIsHandedOutFirst) {
  WorkLedger first(kOptions);
  const WorkLease alices = *first.Acquire(kAlice, 3);
  ASSERT_TRUE(first.Acquire(kBob, 1).has_value());
  ASSERT_EQ(first.Complete(kAlice, alices.id, 1), absl::OkStatus());
  ASSERT_EQ(first.Release(kAlice), 2);
  WorkLedger second = SuccessorOf(PersistedStateOf(first));
  EXPECT_THAT(
      second.Acquire(kCarol, 3)->tickets,
      ElementsAre(WorkTicket{1, 0, 10, 20}, WorkTicket{2, 0, 20, 30}, WorkTicket{4, 0, 40, 50}));
}

TEST(PersistedLedgerTest, ItIsTheSameJobInLaterVersions) {
  WorkLedger first(kOptions);
  const uint64_t before = first.version();
  ASSERT_TRUE(first.Acquire(kAlice, 3).has_value());
  EXPECT_GT(first.version(), before);
  const v1::PersistedJobState persisted = PersistedStateOf(first);
  EXPECT_EQ(persisted.job().job_id(), 77u);
  EXPECT_EQ(persisted.job().state_version(), first.version());
  WorkOptions options = SuccessorsOptions();
  options.job_id = 78;
  const WorkLedger second = WorkLedger::FromPersisted(persisted, options).value();
  EXPECT_EQ(second.ToState().job_id(), 77u);
  EXPECT_GT(second.version(), first.version() + 1'000'000);
  EXPECT_EQ(WorkLedger::FromState(persisted.job(), options)->ToState().job_id(), 77u);
}

TEST(PersistedLedgerTest, AJobWithoutAnIdentityGetsOne) {
  WorkOptions options = kOptions;
  options.job_id = 0;
  const uint64_t one = WorkLedger(options).ToState().job_id();
  EXPECT_NE(one, 0u);
  EXPECT_NE(one, WorkLedger(options).ToState().job_id());
}

TEST(PersistedLedgerTest, ARoundsRecordsAreUnfinished) {
  WorkLedger first(kOptions);
  ASSERT_EQ(first.OpenRound(3).size(), 3u);
  const v1::PersistedJobState persisted = PersistedStateOf(first);
  EXPECT_EQ(persisted.job().unfinished_size(), 3);
  EXPECT_EQ(persisted.next_step(), 0);
  WorkLedger second = SuccessorOf(persisted);
  EXPECT_THAT(second.OpenRound(4), ElementsAre(RecordRange{0, 0, 10}, RecordRange{0, 10, 20},
                                               RecordRange{0, 20, 30}, RecordRange{0, 30, 40}));
}

TEST(PersistedLedgerTest, DamageIsNamed) {
  constexpr char kJob[] =
      "job { global_step: 1 next_position: 50 batch_size: 10 num_records: 100 } ";
  const std::pair<const char*, const char*> kErrors[] = {
      {"job { num_records: 90 }", "job.num_records: expected 100, found 90"},
      {"job { num_records: 100 batch_size: 5 }", "job.batch_size: expected 10, found 5"},
      {"returned { step: 5 } next_step: 5", "returned[0].step: expected [0, 5), found 5"},
      {"returned { step: 2 epoch: 1 } next_step: 5", "returned[0].epoch: expected [0, 0], found 1"},
      {"returned { step: 2 begin: 0 end: 51 } next_step: 5",
       "returned[0].end: expected <= 50, found 51"},
      {"returned { step: 2 begin: 9 end: 8 } next_step: 5",
       "returned[0].begin: expected < 8, found 9"},
      {"leases { lease_id: 3 completed: 1 tickets { step: 1 end: 10 } } next_step: 5",
       "leases[3].completed: expected [0, 1), found 1"},
      {"leases { lease_id: 3 tickets { step: 1 begin: 10 end: 10 } } next_step: 5",
       "leases[3].begin: expected < 10, found 10"},
      {"returned { step: 2 end: 10 } returned { step: 3 begin: 5 end: 15 } next_step: 5",
       "returned[1].begin: expected records of no other ticket, found 5"},
      {"returned { step: 2 end: 10 } returned { step: 2 begin: 10 end: 15 } next_step: 5",
       "returned[1].step: expected a step of no other ticket, found 2"},
      {"returned { step: 2 end: 10 } next_step: 5 "
       "leases { lease_id: 3 tickets { step: 2 begin: 10 end: 20 } }",
       "leases[3]: expected steps and records of no other ticket, those of step, found 2"},
      {"next_step: 5", "next_step: expected global_step 1 + unfinished 0, found 5"},
  };
  for (const auto& [text, error] : kErrors) {
    v1::PersistedJobState persisted;
    const std::string whole =
        std::string(text).starts_with("job") ? text : kJob + std::string(text);
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(whole, &persisted)) << whole;
    EXPECT_EQ(WorkLedger::FromPersisted(persisted, kOptions).status(),
              absl::DataLossError(std::string("persisted job state: ") + error))
        << text;
  }
  v1::PersistedJobState persisted;
  persisted.mutable_job()->set_num_records(100);
  persisted.mutable_job()->set_batch_size(10);
  persisted.mutable_job()->set_global_step(-1);
  EXPECT_THAT(std::string(WorkLedger::FromPersisted(persisted, kOptions).status().message()),
              HasSubstr("global_step"));
}

// ---- Leases that were granted after the job state was persisted.

class AdoptTest : public testing::Test {
 protected:
  bool Adopt(uint64_t worker, const HeldLease& lease) {
    return second_.Adopt(worker, lease, &superseded_);
  }

  WorkLedger first_{kOptions};
  WorkLedger second_ = SuccessorOf(PersistedStateOf(first_));
  std::vector<uint64_t> superseded_;
};

TEST_F(AdoptTest, WhatTheStateDoesNotKnowIsTakenOn) {
  const WorkLease bobs = *first_.Acquire(kBob, 2);
  const WorkLease alices = *first_.Acquire(kAlice, 3);
  EXPECT_TRUE(Adopt(kAlice, Held(alices, 2)));
  EXPECT_EQ(second_.completed_steps(), 2);
  EXPECT_EQ(second_.Outstanding(kAlice), 1);
  EXPECT_TRUE(Adopt(kBob, Held(bobs, 0)));
  EXPECT_THAT(superseded_, IsEmpty());
  EXPECT_THAT(TakeRest(&second_), ElementsAre(WorkTicket{5, 0, 50, 60}, WorkTicket{6, 0, 60, 70},
                                              WorkTicket{7, 0, 70, 80}, WorkTicket{8, 0, 80, 90}));
  EXPECT_EQ(second_.Complete(kAlice, alices.id, 3), absl::OkStatus());
  EXPECT_EQ(second_.Complete(kBob, bobs.id, 2), absl::OkStatus());
  EXPECT_EQ(second_.completed_steps(), 5);
}

TEST_F(AdoptTest, WhatNobodyClaimsIsHandedOutAgain) {
  ASSERT_TRUE(first_.Acquire(kBob, 2).has_value());
  const WorkLease alices = *first_.Acquire(kAlice, 2);
  EXPECT_TRUE(Adopt(kAlice, Held(alices, 1)));
  EXPECT_THAT(
      second_.Acquire(kCarol, 3)->tickets,
      ElementsAre(WorkTicket{0, 0, 0, 10}, WorkTicket{1, 0, 10, 20}, WorkTicket{4, 0, 40, 50}));
}

TEST_F(AdoptTest, AFinishedLeaseIsBookedOnce) {
  const WorkLease alices = *first_.Acquire(kAlice, 2);
  EXPECT_TRUE(Adopt(kAlice, Held(alices, 2)));
  EXPECT_TRUE(Adopt(kAlice, Held(alices, 2)));
  EXPECT_EQ(second_.completed_steps(), 2);
  EXPECT_FALSE(second_.AnyLeased());
}

TEST_F(AdoptTest, AcrossTheEndOfAnEpoch) {
  const WorkOptions options = {9, 25, 10, 1, 77};
  WorkLedger first(options);
  ASSERT_TRUE(first.Acquire(kBob, 4).has_value());
  const WorkLease alices = *first.Acquire(kAlice, 1);
  ASSERT_EQ(alices.tickets[0], (WorkTicket{4, 1, 10, 20}));
  WorkLedger second(options);
  HeldLease held = Held(alices, 0);
  held.id = 500;
  EXPECT_TRUE(second.Adopt(kAlice, held, &superseded_));
  EXPECT_THAT(
      second.Acquire(kCarol, 5)->tickets,
      ElementsAre(WorkTicket{0, 0, 0, 10}, WorkTicket{1, 0, 10, 20}, WorkTicket{2, 0, 20, 25},
                  WorkTicket{3, 1, 0, 10}, WorkTicket{5, 1, 20, 25}));
}

TEST_F(AdoptTest, WhoHeldItByTheStateAloneHasLostIt) {
  ASSERT_TRUE(first_.Acquire(kAlice, 3).has_value());
  const v1::PersistedJobState persisted = PersistedStateOf(first_);
  // The predecessor loses Alice, and Bob goes on.
  first_.Release(kAlice);
  const WorkLease bobs = *first_.Acquire(kBob, 1);
  second_ = SuccessorOf(persisted);
  EXPECT_TRUE(Adopt(kBob, Held(bobs, 1)));
  EXPECT_THAT(superseded_, ElementsAre(kAlice));
  EXPECT_EQ(second_.completed_steps(), 1);
  EXPECT_EQ(second_.Outstanding(kAlice), 0);
  EXPECT_THAT(
      second_.Acquire(kCarol, 3)->tickets,
      ElementsAre(WorkTicket{1, 0, 10, 20}, WorkTicket{2, 0, 20, 30}, WorkTicket{3, 0, 30, 40}));
}

TEST_F(AdoptTest, WorkOfThisChiefIsNotGivenUp) {
  const WorkLease alices = *first_.Acquire(kAlice, 2);
  // Alice comes too late.
  const WorkLease bobs = *second_.Acquire(kBob, 2);
  ASSERT_EQ(bobs.tickets, alices.tickets);
  EXPECT_FALSE(Adopt(kAlice, Held(alices, 1)));
  EXPECT_THAT(superseded_, IsEmpty());
  EXPECT_EQ(second_.completed_steps(), 0);
  EXPECT_EQ(second_.Complete(kBob, bobs.id, 2), absl::OkStatus());
  EXPECT_FALSE(Adopt(kAlice, Held(alices, 1)));
  EXPECT_EQ(second_.completed_steps(), 2);
}

TEST_F(AdoptTest, OfALeaseThatIsRefusedTheCompletedPartCounts) {
  const WorkLease alices = *first_.Acquire(kAlice, 4);
  // Bob has the last two of them.
  HeldLease bobs = Held(alices, 0);
  bobs.id = 500;
  bobs.tickets.erase(bobs.tickets.begin(), bobs.tickets.begin() + 2);
  ASSERT_TRUE(Adopt(kBob, bobs));
  EXPECT_FALSE(Adopt(kAlice, Held(alices, 1)));
  EXPECT_EQ(second_.completed_steps(), 1);
  EXPECT_EQ(second_.Outstanding(kAlice), 0);
  EXPECT_EQ(second_.Acquire(kCarol, 1)->tickets[0], (WorkTicket{1, 0, 10, 20}));
}

TEST_F(AdoptTest, AStepThatIsTakenIsReplaced) {
  // The ledger of a snapshot numbers its steps again.
  v1::JobState state = first_.ToState();
  state.set_global_step(3);
  state.set_next_position(50);
  auto* range = state.add_unfinished();
  range->set_begin(0);
  range->set_end(20);
  second_ = WorkLedger::FromState(state, SuccessorsOptions()).value();
  EXPECT_TRUE(Adopt(kAlice, {500, {{0, 0, 0, 10}, {1, 0, 10, 20}}, 1, 0}));
  EXPECT_EQ(second_.completed_steps(), 4);
  EXPECT_EQ(second_.Complete(kAlice, 500, 2), absl::OkStatus());
  EXPECT_EQ(second_.completed_steps(), 5);
  EXPECT_EQ(second_.Acquire(kCarol, 1)->tickets[0], (WorkTicket{5, 0, 50, 60}));
}

TEST_F(AdoptTest, NoStepIsLeftForWork) {
  v1::JobState state = first_.ToState();
  state.set_global_step(9);
  second_ = WorkLedger::FromState(state, SuccessorsOptions()).value();
  EXPECT_FALSE(Adopt(kAlice, {500, {{0, 0, 0, 10}}, 0, 0}));
  EXPECT_FALSE(second_.AnyLeased());
  EXPECT_EQ(second_.completed_steps(), 9);
}

TEST_F(AdoptTest, NonsenseIsRefused) {
  const HeldLease kNonsense[] = {
      {0, {{0, 0, 0, 10}}, 0},     {500, {}, 0},
      {500, {{0, 0, 0, 10}}, -1},  {500, {{0, 0, 0, 10}}, 2},
      {500, {{-1, 0, 0, 10}}, 0},  {500, {{9, 0, 0, 10}}, 0},
      {500, {{0, -1, 0, 10}}, 0},  {500, {{0, int64_t{1} << 60, 0, 10}}, 0},
      {500, {{0, 0, -1, 10}}, 0},  {500, {{0, 0, 10, 10}}, 0},
      {500, {{0, 0, 95, 101}}, 0}, {500, {{0, 0, 0, 10}, {1, 0, 5, 15}}, 0},
  };
  for (const HeldLease& lease : kNonsense) EXPECT_FALSE(Adopt(kAlice, lease));
  EXPECT_FALSE(second_.AnyLeased());
  EXPECT_EQ(TakeRest(&second_).size(), 9u);
}

TEST_F(AdoptTest, ALeaseThatWasTakenBackHereStaysSo) {
  const WorkLease alices = *first_.Acquire(kAlice, 1);
  ASSERT_TRUE(Adopt(kAlice, Held(alices, 0)));
  second_.Release(kAlice);
  EXPECT_FALSE(second_.Confirm(kAlice, Held(alices, 1)));
  EXPECT_FALSE(Adopt(kAlice, Held(alices, 1)));
  EXPECT_EQ(second_.completed_steps(), 0);
}

// ---- Rounds.

TEST(LedgerRoundTest, AStepOnSeveralBatches) {
  WorkLedger ledger({3, 100, 10});
  const std::vector<RecordRange> round = ledger.OpenRound(3);
  EXPECT_THAT(round,
              ElementsAre(RecordRange{0, 0, 10}, RecordRange{0, 10, 20}, RecordRange{0, 20, 30}));
  EXPECT_TRUE(ledger.round_open());
  EXPECT_DOUBLE_EQ(ledger.epochs_completed(), 0);
  ledger.CompleteRound({round[0], round[2]});
  EXPECT_EQ(ledger.completed_steps(), 1);
  EXPECT_DOUBLE_EQ(ledger.epochs_completed(), 0.2);
  EXPECT_THAT(ledger.OpenRound(3),
              ElementsAre(RecordRange{0, 10, 20}, RecordRange{0, 30, 40}, RecordRange{0, 40, 50}));
}

TEST(LedgerRoundTest, AnAbandonedRoundComesBack) {
  WorkLedger ledger({3, 100, 10});
  const std::vector<RecordRange> round = ledger.OpenRound(2);
  ledger.AbandonRound();
  EXPECT_FALSE(ledger.round_open());
  EXPECT_EQ(ledger.completed_steps(), 0);
  EXPECT_THAT(ledger.Acquire(kAlice, 2)->tickets,
              ElementsAre(WorkTicket{0, 0, 0, 10}, WorkTicket{1, 0, 10, 20}));
}

TEST(LedgerRoundTest, StepsThatCameBackLoseTheirNumbers) {
  WorkLedger ledger({9, 100, 10});
  const uint64_t id = ledger.Acquire(kAlice, 3)->id;
  const uint64_t bobs = ledger.Acquire(kBob, 2)->id;
  ASSERT_EQ(ledger.Complete(kAlice, id, 1), absl::OkStatus());
  ASSERT_EQ(ledger.Complete(kBob, bobs, 2), absl::OkStatus());
  ASSERT_EQ(ledger.Release(kAlice), 2);
  const std::vector<RecordRange> round = ledger.OpenRound(1);
  EXPECT_THAT(round, ElementsAre(RecordRange{0, 10, 20}));
  ledger.CompleteRound(round);
  EXPECT_EQ(ledger.completed_steps(), 4);
  EXPECT_THAT(ledger.Acquire(kAlice, 2)->tickets,
              ElementsAre(WorkTicket{4, 0, 20, 30}, WorkTicket{5, 0, 50, 60}));
}

TEST(LedgerRoundTest, TheEndOfAnEpochIsSharedOut) {
  WorkLedger ledger({9, 47, 10});
  const std::vector<RecordRange> first = ledger.OpenRound(4);
  EXPECT_EQ(first.back(), (RecordRange{0, 30, 40}));
  ledger.CompleteRound(first);
  EXPECT_THAT(ledger.OpenRound(4), ElementsAre(RecordRange{0, 40, 42}, RecordRange{0, 42, 44},
                                               RecordRange{0, 44, 46}, RecordRange{0, 46, 47}));
  // Fewer records than tickets: the others are of the next epoch.
  WorkLedger tiny({9, 12, 10});
  const std::vector<RecordRange> ten = tiny.OpenRound(1);
  tiny.CompleteRound(ten);
  EXPECT_THAT(tiny.OpenRound(3),
              ElementsAre(RecordRange{0, 10, 11}, RecordRange{0, 11, 12}, RecordRange{1, 0, 10}));
}

// K workers with batches of B take the records that one worker with batches of K*B takes.
TEST(LedgerRoundTest, RoundsAreTheBatchesOfOneWorker) {
  for (const int64_t num_records : {40, 48, 101, 126}) {
    WorkLedger one({50, num_records, 12});
    WorkLedger four({50, num_records, 3});
    for (int step = 0; step < 50; ++step) {
      const WorkTicket whole = one.Acquire(kAlice, 1)->tickets[0];
      const std::vector<RecordRange> parts = four.OpenRound(4);
      RecordSet together;
      for (const RecordRange& part : parts) ASSERT_TRUE(together.Add(part));
      ASSERT_EQ(together.size(), whole.end - whole.begin) << "step " << step;
      ASSERT_TRUE(together.Covers(whole.records()));
      four.CompleteRound(parts);
    }
  }
}

}  // namespace
}  // namespace keelson
