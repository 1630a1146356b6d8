#include "worker/progress.h"

#include <thread>

#include "gmock/gmock.h"

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
  step.figures.set_push_retries(1);
  step.pull = absl::Seconds(1);
  step.input = absl::Seconds(2);
  step.compute = absl::Seconds(3);
  step.push = absl::Seconds(4);
  step.figures.set_credit_wait_seconds(5);
  step.figures.set_bytes_pushed(6);
  step.figures.set_bytes_pulled(7);
  return step;
}

Ticket TicketOf(uint64_t lease_id) { return StepOf(lease_id).ticket; }

std::vector<Ticket> Tickets(uint64_t lease_id, size_t count) {
  return std::vector<Ticket>(count, TicketOf(lease_id));
}

v1::StateVersions Versions(uint64_t current, uint64_t stored) {
  v1::StateVersions state_versions;
  state_versions.set_current(current);
  state_versions.set_stored(stored);
  return state_versions;
}

// The chief's answer to a registration.
v1::RegisterResponse Keeping(const std::vector<uint64_t>& leases,
                             v1::StateVersions state_versions = {}) {
  v1::RegisterResponse answer;
  answer.mutable_kept_leases()->Add(leases.begin(), leases.end());
  *answer.mutable_state_versions() = state_versions;
  return answer;
}

std::vector<uint64_t> HeldLeases(const Progress& progress) {
  std::vector<uint64_t> ids;
  for (const v1::HeldLease& lease : progress.Held()) ids.push_back(lease.lease_id());
  return ids;
}

std::map<uint64_t, int64_t> Leases(const v1::WorkerProgress& report) {
  std::map<uint64_t, int64_t> leases;
  for (const v1::LeaseProgress& lease : report.leases()) {
    leases[lease.lease_id()] = lease.completed_steps();
  }
  return leases;
}

TEST(ProgressTest, TakeTellsWhatIsNewAndBeginsAnew) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 3));
  progress.Finish(StepOf(7));
  progress.Finish(StepOf(7));
  progress.AddNonFiniteLoss();
  const v1::WorkerProgress report = progress.Take();
  EXPECT_THAT(Leases(report), ElementsAre(Pair(7, 2)));
  EXPECT_EQ(report.figures().steps(), 2);
  EXPECT_EQ(report.figures().examples(), 8);
  EXPECT_EQ(report.figures().loss_sum(), 1.0);
  EXPECT_EQ(report.losses_size(), report.figures().steps());
  EXPECT_EQ(report.figures().non_finite_losses(), 1);
  EXPECT_EQ(report.figures().staleness_sum(), 4);
  EXPECT_EQ(report.figures().staleness_max(), 2);
  EXPECT_THAT(report.figures().staleness_counts(), ElementsAre(0, 0, 2, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(report.figures().pull_seconds(), 2);
  EXPECT_EQ(report.figures().input_seconds(), 4);
  EXPECT_EQ(report.figures().compute_seconds(), 6);
  EXPECT_EQ(report.figures().push_seconds(), 8);
  EXPECT_EQ(report.figures().push_retries(), 2);
  EXPECT_EQ(report.figures().credit_wait_seconds(), 10);
  EXPECT_EQ(report.figures().bytes_pushed(), 12);
  EXPECT_EQ(report.figures().bytes_pulled(), 14);
  const v1::WorkerProgress nothing = progress.Take();
  EXPECT_EQ(nothing.figures().steps(), 0);
  EXPECT_THAT(Leases(nothing), IsEmpty());
}

TEST(ProgressTest, AStepWithoutALossIsNotInTheSumOfLosses) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 2));
  FinishedStep step = StepOf(7);
  step.loss.reset();
  progress.Finish(step);
  EXPECT_EQ(progress.totals().loss, std::nullopt);
  progress.Finish(StepOf(7));
  const v1::WorkerProgress report = progress.Take();
  EXPECT_THAT(Leases(report), ElementsAre(Pair(7, 2)));
  EXPECT_EQ(report.figures().steps(), 2);
  EXPECT_EQ(report.figures().steps_without_loss(), 1);
  EXPECT_EQ(report.figures().loss_sum(), 0.5);
  ASSERT_EQ(report.losses_size(), 1);
  EXPECT_EQ(report.losses(0).loss(), 0.5);
  EXPECT_EQ(progress.totals().loss, 0.5);
}

TEST(ProgressTest, ARefusedPushIsToldUntilTheChiefAnswers) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 1));
  progress.Refuse(TicketOf(7));
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  EXPECT_EQ(progress.totals().dropped_tickets, 1);
  const v1::WorkerProgress lost = progress.Take();
  EXPECT_EQ(lost.refused_size(), 1);
  progress.Restore(lost);
  const v1::WorkerProgress report = progress.Take();
  ASSERT_EQ(report.refused_size(), 1);
  EXPECT_EQ(report.refused(0).lease_id(), 7u);
  EXPECT_EQ(report.refused(0).step(), 5);
  progress.Acknowledge(report, {});
  EXPECT_EQ(progress.Take().refused_size(), 0);
}

TEST(ProgressTest, StepsAreCountedByTheirStaleness) {
  Progress progress;
  for (const int64_t staleness : {0, 0, 1, 3, 4, 5, 64, 65, 10000}) {
    FinishedStep step = StepOf(7);
    step.staleness = staleness;
    progress.Finish(step);
  }
  const v1::WorkerProgress report = progress.Take();
  EXPECT_THAT(report.figures().staleness_counts(), ElementsAre(2, 1, 0, 2, 1, 0, 0, 1, 2));
  EXPECT_EQ(report.figures().staleness_max(), 10000);
  EXPECT_THAT(progress.Take().figures().staleness_counts(), IsEmpty());
}

TEST(ProgressTest, ATicketIsValidWhileItsLeaseIsHeld) {
  Progress progress;
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  progress.AddLease(7, Tickets(7, 1));
  EXPECT_TRUE(progress.IsValid(TicketOf(7)));
  progress.Finish(StepOf(7));
  EXPECT_FALSE(progress.IsValid(TicketOf(7))) << "all its tickets are done";
  progress.AddLease(8, Tickets(8, 1));
  progress.DropLeases();
  EXPECT_FALSE(progress.IsValid(TicketOf(8)));
}

TEST(ProgressTest, LoggedValuesAreToldOnce) {
  Progress progress;
  EXPECT_TRUE(progress.Log("accuracy", 7, 0.5));
  const v1::WorkerProgress told = progress.Take();
  ASSERT_EQ(told.logged_size(), 1);
  EXPECT_EQ(told.logged(0).ShortDebugString(), "name: \"accuracy\" step: 7 value: 0.5");
  progress.Restore(told);
  EXPECT_EQ(progress.Take().logged_size(), 0);
  int count = 0;
  while (progress.Log("accuracy", 8, 1)) ++count;
  EXPECT_EQ(progress.Take().logged_size(), count);
  EXPECT_TRUE(progress.Log("accuracy", 9, 1));
}

TEST(ProgressTest, RestoredProgressIsTakenAgain) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 1));
  progress.AddLease(8, Tickets(8, 3));
  progress.Finish(StepOf(7));
  progress.Finish(StepOf(8));
  progress.AddNonFiniteLoss();
  const v1::WorkerProgress report = progress.Take();
  progress.Finish(StepOf(8));
  progress.Restore(report);
  const v1::WorkerProgress again = progress.Take();
  EXPECT_THAT(Leases(again), ElementsAre(Pair(7, 1), Pair(8, 2)));
  EXPECT_EQ(again.figures().steps(), 3);
  EXPECT_EQ(again.figures().loss_sum(), 1.5);
  EXPECT_EQ(again.losses_size(), again.figures().steps());
  EXPECT_EQ(again.figures().non_finite_losses(), 1);
  EXPECT_EQ(again.figures().staleness_max(), 2);
  EXPECT_THAT(again.figures().staleness_counts(), ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Leases(progress.Take()), IsEmpty());
}

TEST(ProgressTest, AnOlderReportThatComesBackDoesNotHideANewerOne) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 3));
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
  progress.AddLease(7, Tickets(7, 3));
  progress.Finish(StepOf(7));
  const v1::WorkerProgress report = progress.Take();
  progress.DropLeases();
  progress.Restore(report);
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  EXPECT_EQ(progress.Take().figures().steps(), 1);
}

TEST(ProgressTest, AStepOfADroppedLeaseCountsInTheSumsOnly) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 2));
  progress.DropLeases();
  progress.Finish(StepOf(7));
  const v1::WorkerProgress report = progress.Take();
  EXPECT_EQ(report.figures().steps(), 1);
  EXPECT_THAT(Leases(report), IsEmpty());
}

TEST(ProgressTest, AFinishedLeaseIsHeldUntilItIsStored) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 2));
  progress.Finish(StepOf(7));
  progress.Acknowledge(progress.Take(), Versions(20, 20));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(7)) << "it is not finished";
  progress.Finish(StepOf(7));
  progress.Acknowledge(progress.Take(), Versions(21, 20));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(7));
  EXPECT_THAT(Leases(progress.Take()), IsEmpty()) << "it was told";
  progress.Acknowledge({}, Versions(30, 20));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(7));
  progress.Acknowledge({}, Versions(31, 21));
  EXPECT_THAT(HeldLeases(progress), IsEmpty());
}

TEST(ProgressTest, HeldTellsEverythingOfALease) {
  Progress progress;
  progress.AddLease(7, {{5, 1, 10, 14, 7, 3, true, true}, {6, 1, 14, 18, 7}});
  progress.Finish(StepOf(7));
  const std::vector<v1::HeldLease> held = progress.Held();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].lease_id(), 7u);
  EXPECT_EQ(held[0].completed_steps(), 1);
  ASSERT_EQ(held[0].tickets_size(), 2);
  EXPECT_EQ(held[0].tickets(0).step(), 5);
  EXPECT_EQ(held[0].tickets(0).records().epoch(), 1);
  EXPECT_EQ(held[0].tickets(0).records().begin(), 10);
  EXPECT_EQ(held[0].tickets(0).records().end(), 14);
  EXPECT_EQ(held[0].tickets(0).attempt(), 3u);
  EXPECT_TRUE(held[0].tickets(0).contested());
  EXPECT_EQ(held[0].tickets(1).step(), 6);
  EXPECT_EQ(held[0].tickets(1).attempt(), 0u);
}

TEST(ProgressTest, KeepDropsWhatTheChiefDoesNotKeep) {
  Progress progress;
  for (const uint64_t id : {7, 8}) progress.AddLease(id, Tickets(id, 2));
  const std::vector<v1::HeldLease> held = progress.Held();
  progress.AddLease(9, Tickets(9, 2));
  progress.Keep(held, Keeping({8, 77}));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(8));
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  EXPECT_FALSE(progress.IsValid(TicketOf(9))) << "another chief's";
}

// The chief has recorded it as finished, so it is no longer a lease.
TEST(ProgressTest, AFinishedLeaseIsRememberedAlsoWhenItIsNotKept) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 1));
  progress.Finish(StepOf(7));
  progress.Keep(progress.Held(), Keeping({}, Versions(92, 90)));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(7));
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  progress.Acknowledge({}, Versions(93, 92));
  EXPECT_THAT(HeldLeases(progress), IsEmpty());
}

TEST(ProgressTest, AKeptLeaseIsToldFromItsBeginning) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 3));
  progress.Finish(StepOf(7));
  progress.Take();
  progress.Keep(progress.Held(), Keeping({7}));
  EXPECT_THAT(Leases(progress.Take()), ElementsAre(Pair(7, 1)));
}

TEST(ProgressTest, AFinishedLeaseThatWasToldWhenRegisteringWaitsForThoseBooks) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 1));
  progress.Finish(StepOf(7));
  progress.Acknowledge(progress.Take(), Versions(95, 90));
  // A successor that has read version 90 numbers on from there.
  progress.Keep(progress.Held(), Keeping({7}, Versions(92, 90)));
  EXPECT_THAT(Leases(progress.Take()), IsEmpty()) << "it was told when registering";
  progress.Acknowledge({}, Versions(93, 91));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(7));
  progress.Acknowledge({}, Versions(94, 92));
  EXPECT_THAT(HeldLeases(progress), IsEmpty());
}

TEST(ProgressTest, ALeaseThatIsFinishedWhileRegisteringIsToldAnew) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 1));
  const std::vector<v1::HeldLease> held = progress.Held();
  progress.Finish(StepOf(7));
  const v1::WorkerProgress lost = progress.Take();
  progress.Keep(held, Keeping({7}, Versions(5, 5)));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(7));
  EXPECT_THAT(Leases(progress.Take()), ElementsAre(Pair(7, 1)));
}

TEST(ProgressTest, ADroppedTicketEndsItsLease) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 3));
  progress.AddLease(8, Tickets(8, 1));
  progress.Finish(StepOf(7));
  progress.Acknowledge(progress.Take(), Versions(1, 1));
  progress.Drop(TicketOf(7));
  progress.Drop(TicketOf(8));
  progress.Drop(TicketOf(9));
  EXPECT_FALSE(progress.IsValid(TicketOf(7)));
  EXPECT_FALSE(progress.IsValid(TicketOf(8)));
  EXPECT_THAT(HeldLeases(progress), ElementsAre(7)) << "nothing is left of 8";
  const v1::WorkerProgress report = progress.Take();
  EXPECT_THAT(Leases(report), ElementsAre(Pair(7, 1))) << "what was done counts";
  progress.Acknowledge(report, Versions(2, 2));
  EXPECT_THAT(HeldLeases(progress), IsEmpty());
}

// The waits below would last for an hour if nothing were urgent.
TEST(ProgressTest, AFinishedLeaseIsUrgent) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 2));
  progress.Finish(StepOf(7));
  std::thread trains([&] { progress.Finish(StepOf(7)); });
  while (Leases(progress.Take())[7] != 2) progress.WaitForUrgent(absl::Hours(1));
  trains.join();
}

TEST(ProgressTest, ALossThatIsNotFiniteIsUrgent) {
  Progress progress;
  std::thread trains([&] { progress.AddNonFiniteLoss(); });
  while (progress.Take().figures().non_finite_losses() == 0) progress.WaitForUrgent(absl::Hours(1));
  trains.join();
}

TEST(ProgressTest, WhoWaitsUntilAllIsDoneReportsIt) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 2));
  progress.Finish(StepOf(7));
  std::thread trains([&] { progress.Finish(StepOf(7)); });
  v1::WorkerProgress report;
  while (Leases(report)[7] != 2) {
    progress.WaitUntilDone(absl::Hours(1));
    report = progress.Take();
  }
  trains.join();
  progress.WaitUntilDone(absl::Hours(1));
}

TEST(ProgressTest, ADroppedTicketIsNotWaitedFor) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 1));
  std::thread trains([&] { progress.Drop(TicketOf(7)); });
  while (progress.IsValid(TicketOf(7))) progress.WaitUntilDone(absl::Hours(1));
  trains.join();
}

TEST(ProgressTest, WhatIsUrgentEndsTheWaitUntilAllIsDone) {
  Progress progress;
  progress.AddLease(7, Tickets(7, 1));
  progress.AddNonFiniteLoss();
  progress.WaitUntilDone(absl::Hours(1));
}

TEST(ProgressTest, AWakeIsNotMissed) {
  Progress progress;
  progress.Wake();
  progress.WaitForUrgent(absl::Hours(1));
}

}  // namespace
}  // namespace keelson
