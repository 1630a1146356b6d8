#include "bench/gpu/report.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

Spread Exactly(double value) { return {value, value, value}; }

StepMeasurement Step(double step, double compute, double transfer, double busy) {
  StepMeasurement measurement;
  measurement.step_case = {.name = "test", .depth = 2, .batch = 4096};
  measurement.step = Exactly(step);
  measurement.compute = Exactly(compute);
  measurement.transfer = Exactly(transfer);
  measurement.busy = busy;
  return measurement;
}

// All goals met.
GpuResults Results() {
  GpuResults results;
  results.gpu.name = "Test GPU";
  results.limits.emplace();
  results.limits->copy_by_kernel = Exactly(4e12);
  results.limits->products.push_back({Precision::kTf32, Exactly(400e12)});
  results.limits->square = 8192;
  results.products.push_back({"forward", Precision::kTf32, Exactly(90e12), Exactly(100e12)});
  results.kernels.push_back({"axpy", "x, y twice", 128e6, Exactly(3.6e12)});
  results.steps.push_back(Step(/*step=*/105, /*compute=*/100, /*transfer=*/60, /*busy=*/98));
  return results;
}

const GoalOutcome* Find(const std::vector<GoalOutcome>& outcomes, const std::string& text) {
  for (const GoalOutcome& outcome : outcomes) {
    if (absl::StrContains(outcome.goal, text)) return &outcome;
  }
  return nullptr;
}

TEST(StepMeasurementTest, HiddenIsWhatTheTransferDoesNotCost) {
  EXPECT_DOUBLE_EQ(Step(100, 100, 60, 90).Hidden(), 1);
  EXPECT_DOUBLE_EQ(Step(130, 100, 60, 90).Hidden(), 0.5);
  EXPECT_DOUBLE_EQ(Step(160, 100, 60, 90).Hidden(), 0);
  // Steps vary: neither more than all nor less than nothing.
  EXPECT_DOUBLE_EQ(Step(95, 100, 60, 90).Hidden(), 1);
  EXPECT_DOUBLE_EQ(Step(170, 100, 60, 90).Hidden(), 0);
  EXPECT_EQ(Step(100, 100, 0, 90).Hidden(), 0);
}

TEST(StepMeasurementTest, IdleIsWhatTheGpuDoesNotCompute) {
  EXPECT_DOUBLE_EQ(Step(100, 100, 60, 75).Idle(), 0.25);
  EXPECT_DOUBLE_EQ(Step(100, 100, 60, 101).Idle(), 0);
  EXPECT_EQ(Step(0, 0, 0, 0).Idle(), 0);
}

TEST(GpuGoalsTest, AreMetAtTheirNumbers) {
  const auto outcomes = CheckGpuGoals(Results());
  EXPECT_EQ(outcomes.size(), 4);
  for (const GoalOutcome& outcome : outcomes) EXPECT_TRUE(outcome.met) << outcome.goal;
  EXPECT_DOUBLE_EQ(Find(outcomes, "forward")->found, 0.9);
  EXPECT_DOUBLE_EQ(Find(outcomes, "axpy")->found, 0.9);
  EXPECT_DOUBLE_EQ(Find(outcomes, "step / longer")->found, 1.05);
  EXPECT_NEAR(Find(outcomes, "GPU idle")->found, 1 - 98.0 / 105, 1e-12);
}

TEST(GpuGoalsTest, AreMissedBeyondThem) {
  GpuResults results = Results();
  results.products[0].device = Exactly(84e12);
  results.kernels[0].bytes_per_second = Exactly(3.1e12);
  results.steps[0] = Step(/*step=*/116, /*compute=*/100, /*transfer=*/60, /*busy=*/98);
  const auto outcomes = CheckGpuGoals(results);
  EXPECT_EQ(outcomes.size(), 4);
  for (const GoalOutcome& outcome : outcomes) EXPECT_FALSE(outcome.met) << outcome.goal;
}

TEST(GpuGoalsTest, AreNotCheckedWhereTheyDoNotApply) {
  GpuResults results = Results();
  results.kernels[0].bytes = 63e6;
  results.steps[0] = Step(/*step=*/60, /*compute=*/10, /*transfer=*/59, /*busy=*/9);
  EXPECT_EQ(Find(CheckGpuGoals(results), "axpy"), nullptr);
  EXPECT_EQ(Find(CheckGpuGoals(results), "GPU idle"), nullptr);
  results.steps[0].step_case.depth = 1;
  EXPECT_EQ(Find(CheckGpuGoals(results), "step / longer"), nullptr);
  // Without a limit there is nothing to compare a kernel with.
  results.kernels[0].bytes = 128e6;
  results.limits.reset();
  EXPECT_EQ(Find(CheckGpuGoals(results), "axpy"), nullptr);
}

TEST(GpuGoalsTest, TinySizesHaveNone) {
  GpuResults results = Results();
  results.smoke = true;
  EXPECT_TRUE(CheckGpuGoals(results).empty());
  EXPECT_EQ(GpuJson(results)["smoke"], true);
}

TEST(GpuReportTest, TablesHaveWhatWasMeasuredAndNothingElse) {
  const std::string text = GpuTables(Results(), TableStyle::kMarkdown);
  for (const char* part : {"Test GPU", "tf32", "400.00 (400.00-400.00)", "axpy", "x, y twice",
                           "0.90", "batch 4096", "105.00 (105.00-105.00)"}) {
    EXPECT_TRUE(absl::StrContains(text, part)) << part << "\n" << text;
  }
  EXPECT_EQ(GpuTables(GpuResults(), TableStyle::kText), "");
}

TEST(GpuReportTest, JsonHasMediansAndGoals) {
  const nlohmann::json json = GpuJson(Results());
  EXPECT_EQ(json["gpu"], "Test GPU");
  EXPECT_EQ(json["limits"]["copy_kernel_bytes_per_s"]["median"], 4e12);
  EXPECT_EQ(json["products"][0]["device_flops_per_s"]["median"], 90e12);
  EXPECT_EQ(json["kernels"][0]["bytes"], 128e6);
  EXPECT_EQ(json["steps"][0]["step_ms"]["median"], 105);
  EXPECT_EQ(json["goals"].size(), 4);
  EXPECT_FALSE(GpuJson(GpuResults()).contains("limits"));
}

}  // namespace
}  // namespace keelson::bench
