#include "evaluator/evaluator_metrics.h"

#include <cmath>

#include "core/startup/scrape_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

std::map<std::string, double> SamplesOf(const EvaluatorMetrics& metrics) {
  Telemetry telemetry;
  const auto registration =
      telemetry.metrics.Add([&metrics](MetricPage* page) { metrics.Collect(page); });
  const absl::StatusOr<Exposition> page = Scrape(telemetry);
  EXPECT_TRUE(page.ok()) << page.status();
  return page.ok() ? page->samples : std::map<std::string, double>();
}

EvaluationRecord RecordAt(int64_t step) {
  EvaluationRecord record;
  record.step = step;
  record.wall_time = absl::FromUnixSeconds(1'700'000'000 + step);
  record.metrics = {{"loss", 0.25}, {"accuracy", 0.5}};
  record.examples = 200;
  record.seconds = 1.5;
  return record;
}

TEST(EvaluatorMetricsTest, BeforeTheFirstEvaluationThereIsNoStep) {
  EvaluatorMetrics metrics;
  const auto samples = SamplesOf(metrics);
  EXPECT_EQ(samples.count("keelson_evaluator_evaluated_step"), 0u);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluations_total"), 0);
  EXPECT_EQ(samples.count("keelson_evaluator_device_info{device=\"\"}"), 0u);
}

TEST(EvaluatorMetricsTest, ShowsTheNewestAndCountsItsOwn) {
  EvaluatorMetrics metrics;
  metrics.SetDevice("cpu, 2 threads");
  metrics.Add(RecordAt(300), /*scored_here=*/true);
  metrics.Add(RecordAt(200), /*scored_here=*/true);
  metrics.Add(RecordAt(400), /*scored_here=*/false);
  const auto samples = SamplesOf(metrics);
  EXPECT_EQ(samples.at("keelson_evaluator_device_info{device=\"cpu, 2 threads\"}"), 1);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluated_step"), 400);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluation_timestamp_seconds"), 1'700'000'400);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluation_seconds"), 1.5);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluation{metric=\"loss\"}"), 0.25);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluation{metric=\"accuracy\"}"), 0.5);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluations_total"), 2);
  EXPECT_EQ(samples.at("keelson_evaluator_examples_total"), 400);
  EXPECT_EQ(samples.at("keelson_evaluator_evaluation_seconds_total"), 3);
}

TEST(EvaluatorMetricsTest, AScoreThatIsNoNumberShowsAsSuch) {
  EvaluatorMetrics metrics;
  EvaluationRecord record = RecordAt(100);
  record.metrics["loss"] = NAN;
  metrics.Add(record, /*scored_here=*/true);
  EXPECT_TRUE(std::isnan(SamplesOf(metrics).at("keelson_evaluator_evaluation{metric=\"loss\"}")));
}

}  // namespace
}  // namespace keelson
