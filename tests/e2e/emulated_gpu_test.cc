// Jobs whose workers compute on emulated GPUs (testing/device/cuda_emulation): the real programs
// and CUDA code, but for the GPU itself.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using testing::HasSubstr;

constexpr char kRealDigits[] = "../shared/data/mnist";
constexpr int kGpuSteps = 24;
constexpr int kSharedSteps = 120;
constexpr absl::Duration kHangLimit = absl::Seconds(180);

// The emulation executes each thread of each kernel.
std::string Config(const std::string& more = "", int max_steps = kGpuSteps) {
  return absl::StrCat(R"(
    model {
      input_shape: [28, 28, 1]
      layers { flatten {} }
      layers { name: "hidden" dense { units: 16 } }
      layers { relu {} }
      layers { name: "scores" dense { units: 10 } }
      loss { kind: SOFTMAX_CROSS_ENTROPY }
    }
    optimizer { momentum { momentum: 0.9 } }
    learning_rate { base: 0.02 }
    train { batch_size: 32 seed: 3 summary_steps: 6 max_steps: )",
                      max_steps, R"( }
    checkpoint { save_steps: 12 }
    )",
                      more);
}

Job MakeJob(int workers, const std::string& config) {
  return Job({.ps = 2, .workers = workers, .evaluator = Job::Evaluator::kNone}, config);
}

void UseGpus(Job* job, const Task& worker, int gpus) {
  job->UseProgram(worker, "emulated_worker", {{"KEELSON_EMULATED_GPUS", absl::StrCat(gpus)}});
}

// The loss of the last line of metrics.
double FinalLoss(const std::string& chief_log) {
  const size_t last = chief_log.rfind(" loss=");
  EXPECT_NE(last, std::string::npos) << chief_log;
  return last == std::string::npos ? 0 : std::stod(chief_log.substr(last + 6));
}

class EmulatedGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!FileExists(kRealDigits)) GTEST_SKIP() << "skipped: no ../shared/data";
  }
  static void StartServersAndChief(Job* job) {
    job->AddFlag(absl::StrCat("--data_dir=", kRealDigits));
    for (const Task& task : {PsTask(0), PsTask(1), kChiefTask}) job->Start(task);
  }
  static void ExpectTheEnd(Job* job, int steps) {
    job->ExpectAllDone(kHangLimit);
    EXPECT_EQ(*DoneStep(job->model_dir()), steps);
    EXPECT_EQ(VerifiedLatestStep(job->model_dir()).value_or(-1), steps);
  }
  // With one worker.
  static void RunToTheEnd(Job* job, const std::vector<std::string>& worker_flags) {
    StartServersAndChief(job);
    job->Start(WorkerTask(0), worker_flags);
    ExpectTheEnd(job, kGpuSteps);
  }
};

TEST_F(EmulatedGpuTest, TrainsAsTheCpuDoes) {
  Job gpu = MakeJob(1, Config());
  UseGpus(&gpu, WorkerTask(0), 1);
  RunToTheEnd(&gpu, {"--device=cuda"});
  EXPECT_THAT(gpu.Log(WorkerTask(0)), HasSubstr("training on cuda:0"));
  Job cpu = MakeJob(1, Config());
  RunToTheEnd(&cpu, {"--device=cpu"});
  EXPECT_NEAR(FinalLoss(gpu.Log(kChiefTask)), FinalLoss(cpu.Log(kChiefTask)), 1e-3);
}

TEST_F(EmulatedGpuTest, SharesAJobWithACpuInEveryFormatAndAtDepth2) {
  Job job = MakeJob(2, Config(R"(
    transfer {
      depth: 2
      groups { variables: "hidden/kernel" push: TOP_K pull: BFLOAT16 top_k_fraction: 0.1 }
      groups { variables: "scores/kernel" push: INT8 pull: FLOAT16 min_elements: 1 }
      groups { variables: "*" push: BFLOAT16 }
    })",
                              kSharedSteps));
  UseGpus(&job, WorkerTask(0), 1);
  StartServersAndChief(&job);
  job.Start(WorkerTask(0), {"--device=auto"});
  // The CPU is so fast that it would do all of the work.
  job.WaitForStep(kChiefTask, 6);
  job.Start(WorkerTask(1), {"--device=cpu"});
  ExpectTheEnd(&job, kSharedSteps);
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("training on cuda:0"));
  EXPECT_THAT(job.Log(WorkerTask(1)), HasSubstr("training on cpu"));
}

TEST_F(EmulatedGpuTest, TwoGpusOfAWorkerShareEachBatch) {
  Job job = MakeJob(1, Config());
  UseGpus(&job, WorkerTask(0), 2);
  RunToTheEnd(&job, {"--device=cuda:0,1", "--precision=tf32"});
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("training on cuda:0"));
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("cuda:1"));
}

TEST_F(EmulatedGpuTest, AutoFallsBackToTheCpuAndSaysWhy) {
  Job job = MakeJob(1, Config());
  UseGpus(&job, WorkerTask(0), 0);
  RunToTheEnd(&job, {"--device=auto"});
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("device auto: "));
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("training on cpu"));
}

// ---- Models with tables, whose rows are not copied to several GPUs.

constexpr char kTableJob[] = R"(
  model {
    features { name: "field0" id {} }
    tables { name: "weights" dim: 1 }
    layers { embedding { table: "weights" } }
    loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
  }
  optimizer { adagrad {} }
  learning_rate { base: 0.1 }
  data { generated_ctr { train_records: 1000 eval_records: 100 } }
  train { batch_size: 16 seed: 3 summary_steps: 6 max_steps: 24 }
)";

TEST(EmulatedGpuTablesTest, OneGpuTrainsAModelWithTables) {
  Job job = MakeJob(1, kTableJob);
  UseGpus(&job, WorkerTask(0), 1);
  for (const Task& task : {PsTask(0), PsTask(1), kChiefTask}) job.Start(task);
  job.Start(WorkerTask(0), {"--device=cuda"});
  job.ExpectAllDone(kHangLimit);
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("training on cuda:0"));
}

TEST(EmulatedGpuTablesTest, SeveralGpusAreRefusedForAModelWithTables) {
  Job job = MakeJob(1, kTableJob);
  UseGpus(&job, WorkerTask(0), 2);
  for (const Task& task : {PsTask(0), PsTask(1), kChiefTask}) job.Start(task);
  job.Start(WorkerTask(0), {"--device=cuda:0,1"});
  job.ExpectExit(WorkerTask(0), kPermanent);
  ExpectOneError({kPermanent, job.Log(WorkerTask(0))}, kPermanent,
                 {"device: expected one for a model with tables, found 2"});
}

// ---- Workers without the GPU that they must use: they end at once.

struct MissingGpuCase {
  const char* name;
  int gpus;
  const char* flag;
  std::vector<std::string> expected;
};

void PrintTo(const MissingGpuCase& c, std::ostream* out) { *out << c.name; }

class MissingGpuTest : public testing::TestWithParam<MissingGpuCase> {};

INSTANTIATE_TEST_SUITE_P(
    Cases, MissingGpuTest,
    testing::Values(MissingGpuCase{"None", 0, "--device=cuda", {"device cuda", "no CUDA device"}},
                    MissingGpuCase{
                        "NotThatMany", 1, "--device=cuda:0,1", {"device cuda", "found 1"}},
                    MissingGpuCase{"Twice", 2, "--device=cuda:1,1", {"device", "cuda:1,1"}},
                    MissingGpuCase{"Unknown", 1, "--device=gpu", {"device", "\"gpu\""}},
                    MissingGpuCase{"Precision", 1, "--precision=half", {"precision", "\"half\""}}),
    [](const auto& info) { return info.param.name; });

TEST_P(MissingGpuTest, EndsAtOnceWithOneLine) {
  Job job = MakeJob(1, Config("data { generated { train_records: 100 eval_records: 20 } }"));
  UseGpus(&job, WorkerTask(0), GetParam().gpus);
  job.Start(WorkerTask(0), {GetParam().flag});
  job.ExpectExit(WorkerTask(0), kPermanent);
  ExpectOneError({kPermanent, job.Log(WorkerTask(0))}, kPermanent, GetParam().expected);
}

// The chief of a job is not started for a worker that cannot train.
TEST(LeadingWorkerTest, EndsBeforeTheJobBegins) {
  Job job({.chief = false, .ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone},
          Config("data { generated { train_records: 100 eval_records: 20 } }"));
  UseGpus(&job, WorkerTask(0), 0);
  job.Start(WorkerTask(0), {"--device=cuda"});
  job.ExpectExit(WorkerTask(0), kPermanent);
  ExpectOneError({kPermanent, job.Log(WorkerTask(0))}, kPermanent, {"no CUDA device"});
  EXPECT_FALSE(FileExists(job.model_dir()));
}

}  // namespace
}  // namespace keelson
