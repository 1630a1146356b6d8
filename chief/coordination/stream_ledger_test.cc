// The work ledger of a stream.
#include <optional>

#include "chief/coordination/work_ledger.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kAlice = 11, kBob = 12;

WorkOptions Stream(int64_t max_steps = kEndlessSteps) {
  WorkOptions options;
  options.max_steps = max_steps;
  options.num_records = int64_t{1} << 62;
  options.stream = true;
  options.batch_size = 4;
  options.job_id = 5;
  return options;
}

// Takes a ticket and completes it.
WorkTicket DoOne(WorkLedger* ledger) {
  const std::optional<WorkLease> lease = ledger->Acquire(kAlice, 1);
  EXPECT_TRUE(lease.has_value());
  if (!lease.has_value()) return {};
  EXPECT_EQ(ledger->Complete(kAlice, lease->id, 1), absl::OkStatus());
  return lease->tickets[0];
}

TEST(StreamLedgerTest, WholeBatchesAreHandedOutAsFilesCome) {
  WorkLedger ledger(Stream());
  EXPECT_FALSE(ledger.Acquire(kAlice, 9).has_value());
  ledger.AddStreamFile("a", 3);
  EXPECT_FALSE(ledger.Acquire(kAlice, 9).has_value());
  ledger.AddStreamFile("b", 7);
  const std::optional<WorkLease> lease = ledger.Acquire(kAlice, 9);
  ASSERT_TRUE(lease.has_value());
  EXPECT_THAT(lease->tickets, ElementsAre(WorkTicket{0, 0, 0, 4}, WorkTicket{1, 0, 4, 8}));
  EXPECT_THAT(lease->stream_files, SizeIs(2));
  EXPECT_FALSE(ledger.Acquire(kBob, 9).has_value());
  EXPECT_FALSE(ledger.Done());
  EXPECT_EQ(ledger.epochs_completed(), 0);
}

TEST(StreamLedgerTest, TheEndHandsOutTheRestAndIsDoneWithTheLastOfIt) {
  WorkLedger ledger(Stream());
  ledger.AddStreamFile("a", 6);
  DoOne(&ledger);
  EXPECT_FALSE(ledger.Acquire(kAlice, 1).has_value());
  ledger.EndStream();
  EXPECT_FALSE(ledger.Done());
  const std::optional<WorkLease> last = ledger.Acquire(kAlice, 9);
  ASSERT_TRUE(last.has_value());
  EXPECT_THAT(last->tickets, ElementsAre(WorkTicket{1, 0, 4, 6}));
  EXPECT_FALSE(ledger.Done());
  EXPECT_EQ(ledger.DoneRecords(), 4);
  ASSERT_EQ(ledger.Complete(kAlice, last->id, 1), absl::OkStatus());
  EXPECT_TRUE(ledger.Done());
  EXPECT_EQ(ledger.DoneRecords(), 6);
  EXPECT_EQ(ledger.completed_steps(), 2);
}

TEST(StreamLedgerTest, AStreamThatEndsBetweenBatches) {
  WorkLedger ledger(Stream());
  ledger.AddStreamFile("a", 8);
  DoOne(&ledger);
  DoOne(&ledger);
  EXPECT_FALSE(ledger.Done());
  ledger.EndStream();
  EXPECT_TRUE(ledger.Done());
}

TEST(StreamLedgerTest, AStreamWithoutRecordsIsDoneAtItsEnd) {
  WorkLedger ledger(Stream());
  ledger.EndStream();
  EXPECT_TRUE(ledger.Done());
}

TEST(StreamLedgerTest, StepsMayEndTrainingBefore) {
  WorkLedger ledger(Stream(1));
  ledger.AddStreamFile("a", 8);
  DoOne(&ledger);
  EXPECT_TRUE(ledger.Done());
  EXPECT_TRUE(ledger.AllHandedOut());
}

TEST(StreamLedgerTest, WorkThatComesBackIsDoneAfterTheEnd) {
  WorkLedger ledger(Stream());
  ledger.AddStreamFile("a", 8);
  ASSERT_TRUE(ledger.Acquire(kBob, 1).has_value());
  DoOne(&ledger);
  ledger.EndStream();
  EXPECT_EQ(ledger.Release(kBob), 1);
  EXPECT_FALSE(ledger.Done());
  EXPECT_EQ(DoOne(&ledger), (WorkTicket{0, 0, 0, 4}));
  EXPECT_TRUE(ledger.Done());
}

TEST(StreamLedgerTest, ASnapshotHasThePositionAndTheFilesFromItOn) {
  WorkLedger ledger(Stream());
  ledger.AddStreamFile("a", 4);
  ledger.AddStreamFile("b", 4);
  ledger.AddStreamFile("c", 8);
  DoOne(&ledger);
  ASSERT_TRUE(ledger.Acquire(kBob, 1).has_value());
  DoOne(&ledger);
  const v1::JobState state = ledger.ToState();
  // Bob's batch, all of "b", counts as unfinished.
  ASSERT_EQ(state.stream_files_size(), 2);
  EXPECT_EQ(state.stream_files(0).name(), "b");
  absl::StatusOr<WorkLedger> restored = WorkLedger::FromState(state, Stream());
  ASSERT_EQ(restored.status(), absl::OkStatus());
  EXPECT_EQ(restored->stream_files().newest(), "c");
  const std::optional<WorkLease> lease = restored->Acquire(kAlice, 9);
  ASSERT_TRUE(lease.has_value());
  EXPECT_THAT(lease->tickets, ElementsAre(WorkTicket{2, 0, 4, 8}, WorkTicket{3, 0, 12, 16}));
  EXPECT_THAT(lease->stream_files, SizeIs(2));
  restored->AddStreamFile("d", 4);
  EXPECT_EQ(DoOne(&*restored), (WorkTicket{4, 0, 16, 20}));
}

TEST(StreamLedgerTest, ASuccessorGivesOutNothingOfFilesThatItHasNotFoundYet) {
  WorkLedger ledger(Stream());
  ledger.AddStreamFile("a", 4);
  v1::PersistedJobState persisted;
  ledger.ToPersisted(&persisted);
  // Found and handed out after that.
  ledger.AddStreamFile("b", 8);
  const std::optional<WorkLease> lost = ledger.Acquire(kBob, 3);
  ASSERT_TRUE(lost.has_value());
  absl::StatusOr<WorkLedger> successor = WorkLedger::FromPersisted(persisted, Stream());
  ASSERT_EQ(successor.status(), absl::OkStatus());
  std::vector<uint64_t> superseded;
  ASSERT_TRUE(successor->Adopt(kBob, {lost->id, lost->tickets, 1, 0}, &superseded));
  EXPECT_EQ(successor->completed_steps(), 1);
  EXPECT_EQ(successor->Release(kBob), 2);
  EXPECT_FALSE(successor->Acquire(kAlice, 1).has_value());
  successor->AddStreamFile("b", 8);
  EXPECT_EQ(DoOne(&*successor), (WorkTicket{1, 0, 4, 8}));
  EXPECT_EQ(DoOne(&*successor), (WorkTicket{2, 0, 8, 12}));
  successor->EndStream();
  EXPECT_TRUE(successor->Done());
}

TEST(StreamLedgerTest, ALeaseFarAheadIsNobodys) {
  WorkLedger ledger(Stream());
  ledger.AddStreamFile("a", 4);
  std::vector<uint64_t> superseded;
  const HeldLease far = {77, {{0, 0, int64_t{1} << 40, (int64_t{1} << 40) + 4}}, 0, 0};
  EXPECT_FALSE(ledger.Adopt(kBob, far, &superseded));
  EXPECT_EQ(DoOne(&ledger), (WorkTicket{0, 0, 0, 4}));
}

TEST(StreamLedgerTest, AJobOfAFixedSetGoesOnWithAStream) {
  WorkLedger before({.max_steps = 9, .num_records = 10, .batch_size = 4});
  DoOne(&before);
  absl::StatusOr<WorkLedger> stream = WorkLedger::FromState(before.ToState(), Stream());
  ASSERT_EQ(stream.status(), absl::OkStatus());
  stream->AddStreamFile("a", 4);
  const WorkTicket first = DoOne(&*stream);
  EXPECT_EQ(first.step, 1);
  EXPECT_EQ(first.begin, 0);
}

TEST(StreamLedgerTest, ADamagedStateIsRefused) {
  WorkLedger ledger(Stream());
  ledger.AddStreamFile("a", 4);
  v1::JobState state = ledger.ToState();
  state.mutable_stream_files(0)->set_end(0);
  EXPECT_TRUE(absl::IsDataLoss(WorkLedger::FromState(state, Stream()).status()));
}

}  // namespace
}  // namespace keelson
