// Whole jobs with workers on a GPU, with the real programs; tests/gpu/run.sh takes them to a
// machine that has one. Prints the accuracies.
#include "tests/support/job.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "gtest/gtest.h"
#include "tests/e2e/job_config.h"
#include "tests/support/model_directory.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

constexpr absl::Duration kHangLimit = absl::Minutes(2);
constexpr int kShortSteps = 200;
// As tests/convergence has them for two CPU workers.
constexpr double kMlpAccuracy = 0.96;
constexpr double kCnnAccuracy = 0.98;
constexpr double kBatchNormAccuracy = 0.96;

// From the environment in a bundle.
std::string RealDigits() {
  const char* const folder = std::getenv("KEELSON_MNIST_DIR");
  return folder == nullptr ? "../shared/data/mnist" : folder;
}

std::string ConfigFile(const std::string& name) {
  const auto text = ReadFile(absl::StrCat("configs/", name));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

// Why there is no GPU to be used, as gpu_bench says it; nothing when there is one.
std::string WhyNoGpu() {
  const ProgramRun run = RunProgram("gpu_bench", {"--probe"}, /*environment=*/{}, kHangLimit);
  if (run.exit_code == kExitDone) return "";
  const std::vector<std::string> errors = ErrorLines(run.log);
  return errors.empty() ? absl::StrCat("no CUDA device: gpu_bench exited with ", run.exit_code)
                        : errors.back();
}

class GpuJobTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = WhyNoGpu();
    if (!reason.empty()) GTEST_SKIP() << "skipped: " << reason;
  }

  // Runs a job with one worker for each of `devices`, two servers, a chief and an evaluator. Every
  // worker must have used its device. Returns the accuracy of the final snapshot.
  double RunJob(const std::string& config, const std::vector<std::string>& devices,
                const std::vector<std::string>& flags) {
    Job job({.ps = 2, .workers = static_cast<int>(devices.size())}, config);
    for (const std::string& flag : flags) job.AddFlag(flag);
    for (const Task& task : {PsTask(0), PsTask(1), kChiefTask}) job.Start(task);
    for (size_t i = 0; i < devices.size(); ++i) {
      job.Start(WorkerTask(static_cast<int>(i)), {absl::StrCat("--device=", devices[i])});
    }
    job.Start(kEvaluatorTask, {"--device=cpu"});
    job.ExpectAllDone(kHangLimit);
    for (size_t i = 0; i < devices.size(); ++i) {
      const std::string log = job.Log(WorkerTask(static_cast<int>(i)));
      EXPECT_TRUE(absl::StrContains(log, absl::StrCat("training on ", devices[i]))) << log;
    }
    const auto evaluations = ReadEvaluations(job.model_dir());
    EXPECT_TRUE(evaluations.ok()) << evaluations.status();
    if (!evaluations.ok() || evaluations->empty()) return 0;
    EXPECT_EQ(evaluations->back().step, *DoneStep(job.model_dir()));
    return evaluations->back().metrics.at("accuracy");
  }

  void ExpectAccuracy(const std::string& what, double accuracy, double wanted) {
    std::printf("%s: accuracy %.4f\n", what.c_str(), accuracy);
    std::fflush(stdout);
    EXPECT_GE(accuracy, wanted) << what;
  }
};

using ShortGpuJobTest = GpuJobTest;

TEST_F(ShortGpuJobTest, OneGpuWorkerTrains) { RunJob(JobConfig(kShortSteps), {"cuda"}, {}); }

TEST_F(ShortGpuJobTest, CpuAndGpuWorkersShareAJob) {
  RunJob(JobConfig(kShortSteps), {"cuda", "cpu"}, {"--wire=bfloat16", "--pipeline_depth=2"});
}

class RealDigitsGpuJobTest : public GpuJobTest {
 protected:
  void SetUp() override {
    GpuJobTest::SetUp();
    if (IsSkipped()) return;
    if (!FileExists(RealDigits())) GTEST_SKIP() << "skipped: no " << RealDigits();
  }

  double Accuracy(const std::string& config, const std::vector<std::string>& devices) {
    return RunJob(ConfigFile(config), devices, {absl::StrCat("--data_dir=", RealDigits())});
  }
};

TEST_F(RealDigitsGpuJobTest, MlpOnOneGpuWorker) {
  ExpectAccuracy("MLP, 2 ps and 1 GPU worker", Accuracy("mnist_mlp.textproto", {"cuda"}),
                 kMlpAccuracy);
}

TEST_F(RealDigitsGpuJobTest, CnnOnOneGpuWorker) {
  ExpectAccuracy("CNN, 2 ps and 1 GPU worker", Accuracy("mnist_cnn.textproto", {"cuda"}),
                 kCnnAccuracy);
}

TEST_F(RealDigitsGpuJobTest, BatchNormOnOneGpuWorker) {
  ExpectAccuracy("small CNN with batch norm, 2 ps and 1 GPU worker",
                 Accuracy("mnist_cnn_batch_norm.textproto", {"cuda"}), kBatchNormAccuracy);
}

TEST_F(RealDigitsGpuJobTest, MlpOnCpuAndGpuWorkers) {
  ExpectAccuracy("MLP, 2 ps, 1 GPU worker and 1 CPU worker",
                 Accuracy("mnist_mlp.textproto", {"cuda", "cpu"}), kMlpAccuracy);
}

}  // namespace
}  // namespace keelson
