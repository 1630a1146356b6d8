#include "bench/meter.h"

#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

Meter::Operation Push(double started, double ended, int64_t bytes) {
  Meter::Operation operation;
  operation.started = started;
  operation.ended = ended;
  operation.pushed_bytes = bytes;
  return operation;
}

TEST(MeterTest, CountsWholeOperationsBetweenTheFirstAndTheLastEnd) {
  Meter meter({10, 12, 12});
  EXPECT_TRUE(meter.Count(Push(8, 9, 1000)));     // warm-up
  EXPECT_TRUE(meter.Count(Push(9, 10.5, 1000)));  // the clock starts at its end
  EXPECT_TRUE(meter.Count(Push(10.5, 11.5, 100)));
  EXPECT_FALSE(meter.Count(Push(11.5, 12.5, 100)));  // the last one
  EXPECT_FALSE(meter.Count(Push(12.5, 13, 100)));    // too late
  const ClientReport report = meter.Report();
  ASSERT_EQ(report.clients.size(), 1);
  EXPECT_DOUBLE_EQ(report.clients[0].pushed_bytes, 100);  // 200 in 2 s
  EXPECT_DOUBLE_EQ(report.clients[0].calls, 1);
  EXPECT_EQ(report.latencies.count(), 2);
  EXPECT_NEAR(report.latencies.PercentileMicroseconds(0.5), 1e6, 2e4);
}

TEST(MeterTest, AnOperationLongerThanTheWindowIsMeasuredByItsOwnTime) {
  Meter meter({0, 1, 1});
  EXPECT_TRUE(meter.Count(Push(-1, 5, 800)));
  EXPECT_FALSE(meter.Count(Push(5, 9, 800)));
  EXPECT_DOUBLE_EQ(meter.Report().clients[0].pushed_bytes, 200);
}

TEST(MeterTest, GoesOnAsCompanyForOthers) {
  Meter meter({0, 1, 3});
  EXPECT_TRUE(meter.Count(Push(-1, 0, 100)));
  EXPECT_TRUE(meter.Count(Push(0, 2, 100)));
  EXPECT_TRUE(meter.Count(Push(2, 2.9, 100)));
  EXPECT_FALSE(meter.Count(Push(2.9, 3, 100)));
  EXPECT_TRUE(meter.over());
  EXPECT_DOUBLE_EQ(meter.Report().clients[0].pushed_bytes, 50);
}

TEST(MeterTest, TimeThatIsLeftOutDoesNotCount) {
  Meter meter({0, 4, 4});
  EXPECT_TRUE(meter.Count(Push(-1, 1, 100)));
  Meter::Operation prepared = Push(3, 4, 100);
  prepared.left_out = 2;
  EXPECT_FALSE(meter.Count(prepared));
  EXPECT_DOUBLE_EQ(meter.Report().clients[0].pushed_bytes, 100);  // in 1 s of 3
}

TEST(MeterTest, WithoutOperationsNothingWasTransferred) {
  Meter meter({0, 1, 1});
  EXPECT_EQ(meter.Report().clients[0].pushed_bytes, 0);
}

TEST(ClientReportTest, AddsUpAndSurvivesJson) {
  ClientReport report;
  report.clients.push_back({1, 2, 3});
  report.latencies.Record(1e-3);
  report.failures = 4;
  report.Add(ReportFromJson(nlohmann::json::parse(ToJson(report).dump())));
  ASSERT_EQ(report.clients.size(), 2);
  EXPECT_EQ(report.clients[1].calls, 1);
  EXPECT_EQ(report.clients[1].pushed_bytes, 2);
  EXPECT_EQ(report.clients[1].pulled_bytes, 3);
  EXPECT_EQ(report.latencies.count(), 2);
  EXPECT_EQ(report.failures, 8);
}

}  // namespace
}  // namespace keelson::bench
