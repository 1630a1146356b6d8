#include "worker/worker_metrics.h"

#include <gmock/gmock.h>

#include "core/startup/scrape_testing.h"
#include "worker/progress.h"

namespace keelson {
namespace {

FinishedStep Step(int64_t staleness) {
  FinishedStep step;
  step.ticket.begin = 64;
  step.ticket.end = 96;
  step.loss = 0.5;
  step.staleness = staleness;
  step.figures.set_push_retries(1);
  step.figures.set_bytes_pushed(1000);
  step.figures.set_bytes_pulled(2000);
  step.pull = absl::Milliseconds(1);
  step.input = absl::Milliseconds(2);
  step.compute = absl::Milliseconds(4);
  step.push = absl::Milliseconds(8);
  step.figures.set_credit_wait_seconds(0.003);
  return step;
}

// The worker's page, over HTTP.
std::map<std::string, double> Samples(const Progress& progress) {
  Telemetry telemetry;
  const auto registration = telemetry.metrics.Add(
      [&](MetricPage* page) { CollectWorkerMetrics(progress.totals(), page); });
  const absl::StatusOr<Exposition> page = Scrape(telemetry);
  EXPECT_TRUE(page.ok()) << page.status();
  return page->samples;
}

TEST(WorkerMetrics, SumFinishedSteps) {
  Progress progress;
  for (const int64_t staleness : {0, 0, 3}) progress.Finish(Step(staleness));
  const std::map<std::string, double> samples = Samples(progress);
  EXPECT_EQ(samples.at("keelson_worker_steps_total"), 3);
  EXPECT_EQ(samples.at("keelson_worker_examples_total"), 96);
  EXPECT_EQ(samples.at("keelson_worker_push_retries_total"), 3);
  EXPECT_EQ(samples.at("keelson_worker_pushed_bytes_total"), 3000);
  EXPECT_EQ(samples.at("keelson_worker_pulled_bytes_total"), 6000);
  EXPECT_EQ(samples.at("keelson_worker_loss"), 0.5);
  EXPECT_DOUBLE_EQ(samples.at("keelson_worker_step_seconds_total{kind=\"pull\"}"), 0.003);
  EXPECT_DOUBLE_EQ(samples.at("keelson_worker_step_seconds_total{kind=\"input\"}"), 0.006);
  EXPECT_DOUBLE_EQ(samples.at("keelson_worker_step_seconds_total{kind=\"compute\"}"), 0.012);
  EXPECT_DOUBLE_EQ(samples.at("keelson_worker_step_seconds_total{kind=\"push\"}"), 0.024);
  EXPECT_DOUBLE_EQ(samples.at("keelson_worker_credit_wait_seconds_total"), 0.009);
}

TEST(WorkerMetrics, TellWhatIsComputedOn) {
  Telemetry telemetry;
  const auto registration = telemetry.metrics.Add(
      [](MetricPage* page) { CollectWorkerDevice("cuda:0 (H200), cuda:1 (H200)", page); });
  const absl::StatusOr<Exposition> page = Scrape(telemetry);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->samples.at("keelson_worker_device_info{device=\"cuda:0 (H200), cuda:1 (H200)\"}"),
            1);
}

TEST(WorkerMetrics, StalenessIsInTheBucketOfItsSize) {
  Progress progress;
  for (const int64_t staleness : {0, 1, 2, 3, 4, 64, 65, 1000}) progress.Finish(Step(staleness));
  const std::map<std::string, double> samples = Samples(progress);
  const std::map<std::string, double> cumulative = {{"0", 1},  {"1", 2},  {"2", 3},
                                                    {"4", 5},  {"8", 5},  {"16", 5},
                                                    {"32", 5}, {"64", 6}, {"+Inf", 8}};
  for (const auto& [bound, count] : cumulative) {
    EXPECT_EQ(samples.at("keelson_worker_staleness_bucket{le=\"" + bound + "\"}"), count) << bound;
  }
  EXPECT_EQ(samples.at("keelson_worker_staleness_sum"), 1139);
}

TEST(WorkerMetrics, CountWhatWasNotPushed) {
  Progress progress;
  progress.AddNonFiniteLoss();
  progress.Drop(Ticket());
  progress.Drop(Ticket());
  progress.DropLeases();
  const std::map<std::string, double> samples = Samples(progress);
  EXPECT_EQ(samples.at("keelson_worker_non_finite_losses_total"), 1);
  EXPECT_EQ(samples.at("keelson_worker_dropped_tickets_total"), 2);
  EXPECT_EQ(samples.at("keelson_worker_ended_memberships_total"), 1);
  EXPECT_EQ(samples.at("keelson_worker_steps_total"), 0);
  EXPECT_EQ(samples.count("keelson_worker_loss"), 0);
}

TEST(WorkerMetrics, WithoutALossThereIsNone) {
  Progress progress;
  FinishedStep step = Step(0);
  step.loss.reset();
  progress.Finish(step);
  const std::map<std::string, double> samples = Samples(progress);
  EXPECT_EQ(samples.at("keelson_worker_steps_total"), 1);
  EXPECT_EQ(samples.count("keelson_worker_loss"), 0);
}

TEST(WorkerMetrics, AReportToTheChiefTakesNothingAway) {
  Progress progress;
  progress.Finish(Step(0));
  progress.Take();
  progress.Finish(Step(0));
  EXPECT_EQ(Samples(progress).at("keelson_worker_steps_total"), 2);
}

}  // namespace
}  // namespace keelson
