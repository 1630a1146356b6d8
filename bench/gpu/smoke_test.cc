// The whole program on an emulated GPU. What it measures there says nothing; that it measures
// everything does.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/exit_code.h"
#include "gtest/gtest.h"
#include "tests/support/program_run.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kHangLimit = absl::Seconds(240);

ProgramRun RunGpuBench(const std::vector<std::string>& flags, const std::string& gpus) {
  return RunProgram("gpu_bench_emulated", flags, {{"KEELSON_EMULATED_GPUS", gpus}}, kHangLimit);
}

TEST(GpuBenchSmokeTest, MeasuresEveryPart) {
  const ProgramRun run = RunGpuBench({"--smoke"}, "1");
  EXPECT_EQ(run.exit_code, kExitDone) << run.log;
  for (const char* text :
       {"smoke: tiny sizes", "Limits of ", "both at a time", "cuBLASLt, bfloat16",
        "Matrix products of a step", "kernel gradient 32 x 32 x 64", "Own kernels",
        "batch norm backward", "encode top-k", "Whole steps", "wire bf16, depth 2",
        "wait for parameters"}) {
    EXPECT_TRUE(absl::StrContains(run.log, text)) << text << "\n" << run.log;
  }
}

TEST(GpuBenchSmokeTest, MeasuresOnlyWhatItIsAskedFor) {
  const ProgramRun run = RunGpuBench({"--smoke", "--parts=limits", "--precisions=tf32"}, "1");
  EXPECT_EQ(run.exit_code, kExitDone) << run.log;
  EXPECT_TRUE(absl::StrContains(run.log, "cuBLASLt, tf32")) << run.log;
  EXPECT_FALSE(absl::StrContains(run.log, "bfloat16")) << run.log;
  EXPECT_FALSE(absl::StrContains(run.log, "Own kernels")) << run.log;
}

TEST(GpuBenchSmokeTest, SaysSoWithoutAGpu) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, std::vector<std::string>{"--probe"}}) {
    const ProgramRun run = RunGpuBench(flags, "0");
    EXPECT_EQ(run.exit_code, kExitPermanent) << run.log;
    EXPECT_TRUE(absl::StrContains(run.log, "no CUDA device")) << run.log;
  }
}

TEST(GpuBenchSmokeTest, ProbeNamesTheGpu) {
  const ProgramRun run = RunGpuBench({"--probe"}, "1");
  EXPECT_EQ(run.exit_code, kExitDone) << run.log;
  EXPECT_TRUE(absl::StrContains(run.log, "compute capability")) << run.log;
  const ProgramRun second = RunGpuBench({"--probe", "--gpu=1"}, "1");
  EXPECT_EQ(second.exit_code, kExitPermanent) << second.log;
}

}  // namespace
}  // namespace keelson::bench
