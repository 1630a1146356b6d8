// The whole program on an emulated GPU. What it measures there says nothing; that it measures
// everything does.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kHangLimit = absl::Seconds(240);

struct Outcome {
  int exit_code = -1;
  std::string output;
};

Outcome RunGpuBench(const std::vector<std::string>& flags, const std::string& gpus) {
  const char* const folder = std::getenv("KEELSON_BINARY_DIR");
  EXPECT_NE(folder, nullptr) << "KEELSON_BINARY_DIR: expected the folder of the programs";
  Process::Command command;
  command.argv = {JoinPath(folder == nullptr ? "." : folder, "gpu_bench_emulated")};
  command.argv.insert(command.argv.end(), flags.begin(), flags.end());
  command.environment["KEELSON_EMULATED_GPUS"] = gpus;
  command.log_path = JoinPath(FreshDirectory(), "log");
  const auto process = Process::Start(command);
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return {};
  Outcome outcome;
  outcome.exit_code = (*process)->Wait(kHangLimit).value_or(-1);
  outcome.output = (*process)->Log();
  return outcome;
}

TEST(GpuBenchSmokeTest, MeasuresEveryPart) {
  const Outcome outcome = RunGpuBench({"--smoke"}, "1");
  EXPECT_EQ(outcome.exit_code, kExitDone) << outcome.output;
  for (const char* text :
       {"smoke: tiny sizes", "Limits of ", "both at a time", "cuBLASLt, bfloat16",
        "Matrix products of a step", "kernel gradient 32 x 32 x 64", "Own kernels",
        "batch norm backward", "encode top-k", "Whole steps", "wire bf16, depth 2",
        "wait for parameters"}) {
    EXPECT_TRUE(absl::StrContains(outcome.output, text)) << text << "\n" << outcome.output;
  }
}

TEST(GpuBenchSmokeTest, MeasuresOnlyWhatItIsAskedFor) {
  const Outcome outcome = RunGpuBench({"--smoke", "--parts=limits", "--precisions=tf32"}, "1");
  EXPECT_EQ(outcome.exit_code, kExitDone) << outcome.output;
  EXPECT_TRUE(absl::StrContains(outcome.output, "cuBLASLt, tf32")) << outcome.output;
  EXPECT_FALSE(absl::StrContains(outcome.output, "bfloat16")) << outcome.output;
  EXPECT_FALSE(absl::StrContains(outcome.output, "Own kernels")) << outcome.output;
}

TEST(GpuBenchSmokeTest, SaysSoWithoutAGpu) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, std::vector<std::string>{"--probe"}}) {
    const Outcome outcome = RunGpuBench(flags, "0");
    EXPECT_EQ(outcome.exit_code, kExitPermanent) << outcome.output;
    EXPECT_TRUE(absl::StrContains(outcome.output, "no CUDA device")) << outcome.output;
  }
}

TEST(GpuBenchSmokeTest, ProbeNamesTheGpu) {
  const Outcome outcome = RunGpuBench({"--probe"}, "1");
  EXPECT_EQ(outcome.exit_code, kExitDone) << outcome.output;
  EXPECT_TRUE(absl::StrContains(outcome.output, "compute capability")) << outcome.output;
  const Outcome second = RunGpuBench({"--probe", "--gpu=1"}, "1");
  EXPECT_EQ(second.exit_code, kExitPermanent) << second.output;
}

}  // namespace
}  // namespace keelson::bench
