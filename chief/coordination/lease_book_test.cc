#include "chief/coordination/lease_book.h"

#include "chief/coordination/work_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kFirstId = 100;

// Step `step` on ten records of their own.
WorkTicket TicketOf(int64_t step) { return {step, 0, 10 * step, 10 * step + 10}; }

// Leases these steps to the worker.
uint64_t LeaseTo(LeaseBook* book, uint64_t worker, const std::vector<int64_t>& steps,
                 LeaseBook::Lease::Origin origin = LeaseBook::Lease::kGranted) {
  LeaseBook::Lease lease = {worker, 0, {}, origin};
  for (const int64_t step : steps) lease.tickets.push_back(TicketOf(step));
  const uint64_t id = book->NewId();
  book->Add(id, lease);
  return id;
}

std::vector<WorkTicket> UnfinishedOf(const LeaseBook& book) {
  std::vector<WorkTicket> unfinished;
  book.ForEachUnfinished([&](const WorkTicket& ticket) { unfinished.push_back(ticket); });
  return unfinished;
}

LeaseBook::TakenBack TakeAllOf(LeaseBook* book, uint64_t worker) {
  return book->TakeBack([&](const LeaseBook::Lease& lease) { return lease.worker == worker; });
}

TEST(LeaseBookTest, CountsWhatIsNewlyDone) {
  LeaseBook book(kFirstId);
  const uint64_t id = LeaseTo(&book, kAlice, {0, 1, 2});
  EXPECT_EQ(id, kFirstId);
  EXPECT_EQ(book.Complete(kAlice, id, 2).value(), 2);
  EXPECT_EQ(book.Complete(kAlice, id, 1).value(), 0) << "less than before";
  EXPECT_THAT(UnfinishedOf(book), ElementsAre(TicketOf(2)));
  EXPECT_EQ(book.Outstanding(kAlice), 1);
  EXPECT_EQ(book.Complete(kAlice, id, 3).value(), 1);
  EXPECT_TRUE(book.empty());
  EXPECT_EQ(book.Complete(kAlice, id, 3).value(), 0) << "a repetition";
}

TEST(LeaseBookTest, RefusesReportsThatCannotBe) {
  LeaseBook book(kFirstId);
  const uint64_t id = LeaseTo(&book, kAlice, {0});
  EXPECT_EQ(book.Complete(kAlice, id, 2).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(book.Complete(kAlice, id, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(book.Complete(kBob, id, 1).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(book.Complete(kAlice, id + 1, 1).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(book.Complete(kAlice, kFirstId - 1, 1).status().code(), absl::StatusCode::kAborted);
}

TEST(LeaseBookTest, TakesBackWhatIsNotDone) {
  LeaseBook book(kFirstId);
  const uint64_t first = LeaseTo(&book, kAlice, {0, 1});
  LeaseTo(&book, kBob, {2});
  LeaseTo(&book, kAlice, {3});
  ASSERT_TRUE(book.Complete(kAlice, first, 1).ok());
  const LeaseBook::TakenBack taken = TakeAllOf(&book, kAlice);
  EXPECT_EQ(taken.leases, 2);
  EXPECT_THAT(taken.tickets, ElementsAre(TicketOf(1), TicketOf(3)));
  EXPECT_TRUE(book.WasTakenBack(first));
  EXPECT_EQ(book.Complete(kAlice, first, 2).status().code(), absl::StatusCode::kAborted);
  std::set<uint64_t> owing;
  book.AddOwing(&owing);
  EXPECT_THAT(owing, ElementsAre(kBob));
}

TEST(LeaseBookTest, TheNewestLeasesThatWereTakenBackAreRemembered) {
  LeaseBook book(kFirstId);
  const uint64_t done = LeaseTo(&book, kAlice, {0});
  ASSERT_TRUE(book.Complete(kAlice, done, 1).ok());
  uint64_t newest = 0;
  for (size_t i = 0; i <= LeaseBook::kMostTakenBack; ++i) {
    newest = LeaseTo(&book, kAlice, {1});
    TakeAllOf(&book, kAlice);
  }
  EXPECT_EQ(book.taken_back(), LeaseBook::kMostTakenBack);
  EXPECT_TRUE(book.WasTakenBack(newest));
  EXPECT_FALSE(book.WasTakenBack(done + 1));
  EXPECT_EQ(book.Complete(kAlice, done + 1, 1).status().code(), absl::StatusCode::kAborted)
      << "nobody knows whether it was done";
  EXPECT_EQ(book.Complete(kAlice, newest, 1).status().code(), absl::StatusCode::kAborted);
}

TEST(LeaseBookTest, AnInheritedLeaseIsItsWorkersOnceConfirmed) {
  LeaseBook book(kFirstId);
  book.Add(7, {kAlice, 0, {TicketOf(0)}, LeaseBook::Lease::kInherited});
  book.Add(8, {kAlice, 0, {TicketOf(1)}, LeaseBook::Lease::kInherited});
  book.Confirm(kBob, 7);
  EXPECT_EQ(book.leases().at(7).origin, LeaseBook::Lease::kInherited) << "another's";
  book.Confirm(kAlice, 7);
  book.Confirm(kAlice, 9);
  EXPECT_EQ(book.leases().at(7).origin, LeaseBook::Lease::kConfirmed);
  EXPECT_EQ(book.leases().at(8).origin, LeaseBook::Lease::kInherited);
  EXPECT_FALSE(book.WasGranted(7));
}

TEST(LeaseBookTest, FindsThoseWhoHoldRecordsByPersistedStateOnly) {
  LeaseBook book(kFirstId);
  LeaseTo(&book, kAlice, {0}, LeaseBook::Lease::kInherited);
  LeaseTo(&book, kBob, {1}, LeaseBook::Lease::kConfirmed);
  LeaseTo(&book, kCarol, {2});
  RecordSet records;
  for (int64_t step = 0; step < 3; ++step) records.Add(TicketOf(step).records());
  EXPECT_THAT(book.InheritorsOf(records, kCarol), ElementsAre(kBob, kAlice));
  EXPECT_THAT(book.InheritorsOf(records, kAlice), ElementsAre(kBob));
  RecordSet others;
  others.Add(TicketOf(2).records());
  EXPECT_THAT(book.InheritorsOf(others, kAlice), IsEmpty());
}

}  // namespace
}  // namespace keelson
