// Where the programs learn of their cluster, beside a dense TF_CONFIG.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using testing::HasSubstr;

constexpr int kSteps = 200;
constexpr char kNoTfConfig[] = "";

std::string ServersAsJson(const Job& job) {
  return absl::StrCat("[\"", job.Address(PsTask(0)), "\",\"", job.Address(PsTask(1)), "\"]");
}

std::string ServersAsFlag(const Job& job) {
  return absl::StrCat("--ps_hosts=", job.Address(PsTask(0)), ",", job.Address(PsTask(1)));
}

// A server of a job with enableDynamicWorker: it knows only itself, at list position 0.
std::string SparseServer(const Job& job, int index) {
  return absl::StrCat(R"({"cluster":{"worker":{},"ps":[")", job.Address(PsTask(index)),
                      R"("]},"task":{"type":"ps","index":)", index, "}}");
}

std::string SparseWorker(const Job& job, const std::string& key, int index) {
  return absl::StrCat(R"({")", key, R"(":{"worker":{")", index, R"(":")",
                      job.Address(WorkerTask(index)), R"("},"ps":)", ServersAsJson(job),
                      R"(},"task":{"type":"worker","index":)", index, "}}");
}

TEST(ClusterSourcesTest, SparseWorkersFindTheChiefThroughAServer) {
  Job job({.evaluator = Job::Evaluator::kNone}, JobConfig(kSteps));
  job.Start(WorkerTask(0), {}, SparseWorker(job, "cluster", 0));
  job.Start(WorkerTask(1), {}, SparseWorker(job, "sparseCluster", 1));
  job.Start(PsTask(0), {}, SparseServer(job, 0));
  job.Start(PsTask(1), {}, SparseServer(job, 1));
  // The operator tells a dynamic job's chief nobody.
  job.Start(kChiefTask,
            {ServersAsFlag(job), absl::StrCat("--chief_hosts=", job.Address(kChiefTask))},
            R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})");
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), kSteps);
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("the chief is at " + job.Address(kChiefTask)));
}

TEST(ClusterSourcesTest, FlagsInsteadOfTfConfig) {
  Job job({}, JobConfig(kSteps));
  const std::vector<std::string> cluster = {
      ServersAsFlag(job), absl::StrCat("--chief_hosts=", job.Address(kChiefTask)),
      absl::StrCat("--worker_hosts=", job.Address(WorkerTask(0)), ",", job.Address(WorkerTask(1))),
      absl::StrCat("--evaluator_hosts=", job.Address(kEvaluatorTask))};
  for (const Task& task :
       {PsTask(0), PsTask(1), kChiefTask, WorkerTask(0), WorkerTask(1), kEvaluatorTask}) {
    std::vector<std::string> flags = cluster;
    flags.push_back(absl::StrCat("--job_name=", std::string(RoleName(task.role))));
    flags.push_back(absl::StrCat("--task_index=", task.index));
    job.Start(task, flags, kNoTfConfig);
  }
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), kSteps);
  EXPECT_EQ(ReadEvaluations(job.model_dir())->back().step, kSteps);
}

TEST(ClusterSourcesTest, MasterIsTheChief) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kSteps));
  const std::string cluster =
      absl::StrCat(R"({"cluster":{"master":[")", job.Address(kChiefTask), R"("],"ps":[")",
                   job.Address(PsTask(0)), R"("],"worker":[")", job.Address(WorkerTask(0)),
                   R"("]},"task":{"type":")");
  job.Start(kChiefTask, {}, cluster + R"(master","index":"0"}})");
  job.Start(PsTask(0), {}, cluster + R"(ps","index":"0"}})");
  job.Start(WorkerTask(0), {}, cluster + R"(worker","index":"0"}})");
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), kSteps);
}

TEST(ClusterSourcesTest, CommonFlagsOverrideTheConfiguration) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kSteps));
  job.AddFlag("--batch_size=16");
  job.AddFlag("--training_steps=60");
  job.AddFlag("--learning_rate=0.01");
  job.AddFlag("--seed=9");
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), 60);
}

}  // namespace
}  // namespace keelson
