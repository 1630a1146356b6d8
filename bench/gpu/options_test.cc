#include "bench/gpu/options.h"

#include <utility>

#include "core/base/exit_code.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

std::variant<GpuBenchOptions, int> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "gpu_bench");
  return ParseGpuBenchOptions(static_cast<int>(arguments.size()), arguments.data());
}

GpuBenchOptions Parsed(std::vector<const char*> arguments) {
  const auto parsed = Parse(std::move(arguments));
  EXPECT_TRUE(std::holds_alternative<GpuBenchOptions>(parsed));
  return std::get<GpuBenchOptions>(parsed);
}

TEST(GpuBenchOptionsTest, MeasuresEverythingOnTheFirstGpu) {
  const GpuBenchOptions options = Parsed({});
  EXPECT_EQ(options.step.device, "cuda:0");
  for (const char* part : {"limits", "products", "kernels", "step"}) {
    EXPECT_TRUE(options.Measures(part)) << part;
  }
  EXPECT_EQ(options.precisions.size(), 3);
  EXPECT_FALSE(options.smoke);
}

// What the goals of docs/gpu.md are about.
TEST(GpuBenchOptionsTest, SizesAreThoseOfTheGoals) {
  const GpuBenchOptions options = Parsed({});
  EXPECT_GE(options.tensor_bytes, 64'000'000);
  int64_t parameters = 0;
  for (int i = 0; i < options.step.model.layers; ++i) {
    parameters += (options.step.model.units + 1) * options.step.model.units;
  }
  EXPECT_NEAR(static_cast<double>(parameters) * sizeof(float), 100e6, 1e6);
  EXPECT_EQ(options.steps[1].batch, 4096);
  EXPECT_EQ(options.steps[1].depth, 2);
}

TEST(GpuBenchOptionsTest, SmokeIsTiny) {
  const GpuBenchOptions options = Parsed({"--smoke"});
  EXPECT_TRUE(options.smoke);
  EXPECT_LE(options.tensor_bytes, 1 << 20);
  EXPECT_LE(options.square, 128);
  for (const StepCase& step : options.steps) EXPECT_LE(step.batch, 64);
}

TEST(GpuBenchOptionsTest, FlagsSelectAndOverride) {
  const GpuBenchOptions options = Parsed({"--gpu=1", "--parts=limits,step", "--precisions=tf32",
                                          "--repeat=4", "--batch=512", "--json"});
  EXPECT_EQ(options.step.device, "cuda:1");
  EXPECT_TRUE(options.Measures("step"));
  EXPECT_FALSE(options.Measures("kernels"));
  EXPECT_EQ(options.precisions, std::vector<Precision>{Precision::kTf32});
  EXPECT_EQ(options.timing.repetitions, 4);
  for (const StepCase& step : options.steps) EXPECT_EQ(step.batch, 512);
  EXPECT_EQ(options.format, GpuBenchOptions::Format::kJson);
}

TEST(GpuBenchOptionsTest, RefusesWhatItDoesNotKnow) {
  for (const char* flag : {"--parts=speed", "--precisions=half", "--gpu=-1", "--repeat=0"}) {
    const auto parsed = Parse({flag});
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << flag;
    EXPECT_EQ(std::get<int>(parsed), kExitPermanent) << flag;
  }
}

}  // namespace
}  // namespace keelson::bench
