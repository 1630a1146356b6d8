#include "bench/chief/report.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ChiefResult SomeResult() {
  AsynchronousResult async;
  async.heartbeat.cpu_us = {904, 900, 910};
  async.heartbeat.p99_us = 2500;
  async.cores = {1.25, 1.2, 1.3};
  async.wanted_per_second = 5000;
  async.answered_per_second = 1250;
  async.calls["Heartbeat"] = {4000, 1000, 2, 1500, 30500};
  async.job_state_bytes = 77;
  async.memory = {123'000'000, 42};
  SynchronousResult sync;
  sync.rounds = 7;
  sync.round_ms = {1074, 1000, 1100};
  ChiefResult result;
  result.workers = 1000;
  result.servers = 100;
  result.asynchronous = async;
  result.synchronous = sync;
  result.errors["UNAVAILABLE"] = 2;
  return result;
}

// Memory that rises by 10 bytes with each membership, but for the first ones.
LifeResult SomeLives() {
  LifeResult lives;
  lives.workers = 10;
  lives.life_seconds = 3;
  lives.memberships = 400;
  for (int i = 0; i <= 4; ++i)
    lives.samples.push_back({i * 1.0, i * 100, 50'000'000 + i * 1000, 9});
  lives.bytes_per_membership = BytesPerMembership(lives.samples);
  return lives;
}

TEST(ChiefReportTest, HasTheFiguresOfBothModes) {
  const nlohmann::json report = ChiefReport({SomeResult()}, {});
  EXPECT_GT(report["machine"]["cores"], 0);
  const nlohmann::json& result = report["results"][0];
  EXPECT_EQ(result["workers"], 1000);
  EXPECT_EQ(result["errors"]["UNAVAILABLE"], 2);
  EXPECT_EQ(result["asynchronous"]["heartbeat"]["cpu_us"]["median"], 904);
  EXPECT_EQ(result["asynchronous"]["calls"]["Heartbeat"]["failed"], 2);
  EXPECT_EQ(result["asynchronous"]["memory"]["threads"], 42);
  EXPECT_EQ(result["asynchronous"]["job_state_bytes"], 77);
  EXPECT_EQ(result["synchronous"]["round_ms"]["min"], 1000);
  EXPECT_FALSE(report.contains("lives"));
}

TEST(ChiefReportTest, LeavesOutAModeThatWasNotMeasured) {
  ChiefResult result = SomeResult();
  result.asynchronous.reset();
  const nlohmann::json report = ChiefReport({result}, {});
  EXPECT_FALSE(report["results"][0].contains("asynchronous"));
  EXPECT_THAT(CostTable({result}).rows, IsEmpty());
  EXPECT_THAT(JobTable({result}).rows, IsEmpty());
  EXPECT_EQ(RoundTable({result}).rows.size(), 1);
}

TEST(ChiefReportTest, TablesHaveTheSpreadAndTheShare) {
  EXPECT_THAT(CostTable({SomeResult()}).rows[0], Contains("904 (900-910)"));
  EXPECT_THAT(JobTable({SomeResult()}).rows[0],
              ElementsAre("1000", "1.25 (1.20-1.30)", "5000", "1250", "0.25", "1.5", "30.5", "0.0",
                          "0.0", "0.0", "0.0", "123", "42"));
  EXPECT_THAT(RoundTable({SomeResult()}).rows[0], Contains("1074.0 (1000.0-1100.0)"));
}

TEST(ChiefReportTest, RoundsThatDidNotEndHaveNoTime) {
  ChiefResult result = SomeResult();
  *result.synchronous = SynchronousResult();
  EXPECT_THAT(RoundTable({result}).rows[0], ElementsAre("1000", "0", "-", "0.00", "0.0", "0", "0"));
}

TEST(ChiefReportTest, LivesSayHowMemoryGrows) {
  EXPECT_DOUBLE_EQ(BytesPerMembership(SomeLives().samples), 10);
  EXPECT_EQ(BytesPerMembership({}), 0);
  EXPECT_EQ(ChiefReport({}, {SomeLives()})["lives"][0]["samples"][4][1], 400);
  EXPECT_THAT(LifeTable({SomeLives()}).rows[0],
              ElementsAre("10", "3.00", "400", "50", "50", "50", "50", "10", "0.00", "9"));
}

}  // namespace
}  // namespace keelson::bench
