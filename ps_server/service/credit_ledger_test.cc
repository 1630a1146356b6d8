#include "ps_server/service/credit_ledger.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

class CreditLedgerTest : public testing::Test {
 protected:
  static CreditLedger::Options WithBudget(int64_t messages) {
    CreditLedger::Options options;
    options.receive_budget_bytes = messages * options.message_bytes;
    return options;
  }

  ManualClock clock_;
  CreditLedger ledger_{WithBudget(24), &clock_};
};

TEST_F(CreditLedgerTest, DividesTheBudgetAmongClients) {
  EXPECT_EQ(ledger_.Note(1), 8u) << "at most max_credits";
  EXPECT_EQ(ledger_.Note(2), 8u);
  EXPECT_EQ(ledger_.Note(3), 8u);
  EXPECT_EQ(ledger_.Note(4), 6u);
  EXPECT_EQ(ledger_.Note(5), 4u);
  EXPECT_EQ(ledger_.Note(1), 4u) << "for each of them";
}

TEST_F(CreditLedgerTest, GivesAtLeastOne) {
  for (uint64_t client = 1; client < 100; ++client) ledger_.Note(client);
  EXPECT_EQ(ledger_.Note(100), 1u);
  EXPECT_EQ(ledger_.share().active_clients, 100);
}

TEST_F(CreditLedgerTest, CountsAClientOnce) {
  for (int call = 0; call < 100; ++call) EXPECT_EQ(ledger_.Note(7), 8u);
  EXPECT_EQ(ledger_.share().active_clients, 1);
}

TEST_F(CreditLedgerTest, ForgetsWhoIsSilentForTenSeconds) {
  for (uint64_t client = 1; client <= 6; ++client) ledger_.Note(client);
  EXPECT_EQ(ledger_.Note(6), 4u);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(ledger_.Note(6), 4u) << "not yet";
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(ledger_.Note(6), 8u);
  EXPECT_EQ(ledger_.share().active_clients, 1);
}

TEST_F(CreditLedgerTest, ShareIsZeroClientsAfterAllLeft) {
  EXPECT_EQ(ledger_.share().active_clients, 0);
  EXPECT_EQ(ledger_.share().credits, 8u);
  ledger_.Note(1);
  ledger_.Note(2);
  EXPECT_EQ(ledger_.share().active_clients, 2);
  clock_.Advance(absl::Seconds(11));
  EXPECT_EQ(ledger_.share().active_clients, 0);
}

TEST_F(CreditLedgerTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (uint64_t call = 0; call < 500; ++call) {
        EXPECT_GE(ledger_.Note(t), 6u);
        if (call % 100 == 0) clock_.Advance(absl::Seconds(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(ledger_.share().active_clients, 4);
}

TEST(CreditLedgerDefaultsTest, AllowEightEachUntilTheBudgetIsShared) {
  ManualClock clock;
  CreditLedger ledger({}, &clock);
  for (uint64_t client = 1; client <= 7; ++client) EXPECT_EQ(ledger.Note(client), 8u);
  for (uint64_t client = 8; client <= 20; ++client) ledger.Note(client);
  EXPECT_EQ(ledger.Note(1), 3u) << "20 times 3 messages of 4 MiB are no more than 256 MiB";
}

}  // namespace
}  // namespace keelson
