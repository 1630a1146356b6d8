#include "worker/progress.h"

#include <map>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

FinishedStep StepOf(uint64_t lease_id) {
  FinishedStep step;
  step.ticket = {5, 0, 10, 14, lease_id};
  step.loss = 0.5;
  step.staleness = 2;
  step.push_retries = 1;
  step.pull = absl::Seconds(1);
  step.input = absl::Seconds(2);
  step.compute = absl::Seconds(3);
  step.push = absl::Seconds(4);
  step.waited_for_credit = absl::Seconds(5);
  step.bytes_pushed = 6;
  step.bytes_pulled = 7;
  return step;
}

Ticket TicketOf(uint64_t lease_id) { return StepOf(lease_id).ticket; }

std::map<uint64_t, int64_t> Leases(const v1::WorkerProgress& report) {
  std::map<uint64_t, int64_t> leases;
  for (const v1::LeaseProgress& lease : report.leases()) {
    leases[lease.lease_id()] = lease.completed_steps();
  }
  return leases;
}

TEST(ProgressTest, TakeTellsWhatIsNewAndBeginsAnew) {
  Progress progress;
  progress.AddLease(7, 3);
  progress.Finish(StepOf(7));
  progress.Finish(StepOf(7));
  progress.AddNonFiniteLoss();
  const v1::WorkerProgress report = progress.Take();
  EXPECT_THAT(Leases(report), ElementsAre(Pair(7, 2)));
  EXPECT_EQ(report.steps(), 2);
  EXPECT_EQ(report.examples(), 8);
  EXPECT_EQ(report.loss_sum(), 1.0);
  EXPECT_EQ(report.losses_size(), report.steps());
  EXPECT_EQ(report.non_finite_losses(), 1);
  EXPECT_EQ(report.staleness_sum(), 4);
  EXPECT_EQ(report.staleness_max(), 2);
  EXPECT_EQ(report.pull_seconds(), 2);
  EXPECT_EQ(report.input_seconds(), 4);
  EXPECT_EQ(report.compute_seconds(), 6);
  EXPECT_EQ(report.push_seconds(), 8);
  EXPECT_EQ(report.push_retries(), 2);
  EXPECT_EQ(report.credit_wait_seconds(), 10);
  EXPECT_EQ(report.bytes_pushed(), 12);
  EXPECT_EQ(report.bytes_pulled(), 14);
  const v1::WorkerProgress nothing = progress.Take();
  EXPECT_EQ(nothing.steps(), 0);
  EXPECT_THAT(Leases(nothing), IsEmpty());
}

TEST(ProgressTest, ATicketIsValidWhileItsLeaseIsHeld) {
  Progress progress;
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  progress.AddLease(7, 1);
  EXPECT_TRUE(progress.IsValid(TicketOf(7)));
  progress.Finish(StepOf(7));
  progress.Take();
  EXPECT_FALSE(progress.IsValid(TicketOf(7))) << "all its tickets are done and told";
  progress.AddLease(8, 1);
  progress.DropLeases();
  EXPECT_FALSE(progress.IsValid(TicketOf(8)));
}

TEST(ProgressTest, RestoredProgressIsTakenAgain) {
  Progress progress;
  progress.AddLease(7, 1);
  progress.AddLease(8, 3);
  progress.Finish(StepOf(7));
  progress.Finish(StepOf(8));
  progress.AddNonFiniteLoss();
  const v1::WorkerProgress report = progress.Take();
  progress.Finish(StepOf(8));
  progress.Restore(report);
  const v1::WorkerProgress again = progress.Take();
  EXPECT_THAT(Leases(again), ElementsAre(Pair(7, 1), Pair(8, 2)));
  EXPECT_EQ(again.steps(), 3);
  EXPECT_EQ(again.loss_sum(), 1.5);
  EXPECT_EQ(again.losses_size(), again.steps());
  EXPECT_EQ(again.non_finite_losses(), 1);
  EXPECT_EQ(again.staleness_max(), 2);
  EXPECT_THAT(Leases(progress.Take()), IsEmpty());
}

TEST(ProgressTest, AnOlderReportThatComesBackDoesNotHideANewerOne) {
  Progress progress;
  progress.AddLease(7, 3);
  progress.Finish(StepOf(7));
  const v1::WorkerProgress older = progress.Take();
  progress.Finish(StepOf(7));
  progress.Finish(StepOf(7));
  const v1::WorkerProgress newer = progress.Take();
  EXPECT_THAT(Leases(newer), ElementsAre(Pair(7, 3)));
  progress.Restore(newer);
  progress.Restore(older);
  EXPECT_THAT(Leases(progress.Take()), ElementsAre(Pair(7, 3)));
}

TEST(ProgressTest, ARestoredReportDoesNotBringBackADroppedLease) {
  Progress progress;
  progress.AddLease(7, 3);
  progress.Finish(StepOf(7));
  const v1::WorkerProgress report = progress.Take();
  progress.DropLeases();
  progress.Restore(report);
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  EXPECT_EQ(progress.Take().steps(), 1);
}

TEST(ProgressTest, AStepOfADroppedLeaseCountsInTheSumsOnly) {
  Progress progress;
  progress.AddLease(7, 2);
  progress.DropLeases();
  progress.Finish(StepOf(7));
  const v1::WorkerProgress report = progress.Take();
  EXPECT_EQ(report.steps(), 1);
  EXPECT_THAT(Leases(report), IsEmpty());
}

// The waits below would last for an hour if nothing were urgent.
TEST(ProgressTest, AFinishedLeaseIsUrgent) {
  Progress progress;
  progress.AddLease(7, 2);
  progress.Finish(StepOf(7));
  std::thread trains([&] { progress.Finish(StepOf(7)); });
  while (Leases(progress.Take())[7] != 2) progress.WaitForUrgent(absl::Hours(1));
  trains.join();
}

TEST(ProgressTest, ALossThatIsNotFiniteIsUrgent) {
  Progress progress;
  std::thread trains([&] { progress.AddNonFiniteLoss(); });
  while (progress.Take().non_finite_losses() == 0) progress.WaitForUrgent(absl::Hours(1));
  trains.join();
}

TEST(ProgressTest, AWakeIsNotMissed) {
  Progress progress;
  progress.Wake();
  progress.WaitForUrgent(absl::Hours(1));
}

}  // namespace
}  // namespace keelson
