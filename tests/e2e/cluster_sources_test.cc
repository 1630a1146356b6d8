// Where the programs learn of their cluster.
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/ports.h"

namespace keelson {
namespace {

using testing::HasSubstr;

constexpr int kSourceSteps = 200;
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
  Job job({.evaluator = Job::Evaluator::kNone}, JobConfig(kSourceSteps));
  job.Start(WorkerTask(0), {}, SparseWorker(job, "cluster", 0));
  job.Start(WorkerTask(1), {}, SparseWorker(job, "sparseCluster", 1));
  job.Start(PsTask(0), {}, SparseServer(job, 0));
  job.Start(PsTask(1), {}, SparseServer(job, 1));
  // The operator gives the chief of a dynamic job no addresses.
  job.Start(kChiefTask,
            {ServersAsFlag(job), absl::StrCat("--chief_hosts=", job.Address(kChiefTask))},
            R"({"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})");
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), kSourceSteps);
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("the chief is at " + job.Address(kChiefTask)));
}

TEST(ClusterSourcesTest, FlagsInsteadOfTfConfig) {
  Job job({}, JobConfig(kSourceSteps));
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
  EXPECT_EQ(*DoneStep(job.model_dir()), kSourceSteps);
  EXPECT_EQ(ReadEvaluations(job.model_dir())->back().step, kSourceSteps);
}

TEST(ClusterSourcesTest, MasterIsTheChief) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kSourceSteps));
  const std::string cluster =
      absl::StrCat(R"({"cluster":{"master":[")", job.Address(kChiefTask), R"("],"ps":[")",
                   job.Address(PsTask(0)), R"("],"worker":[")", job.Address(WorkerTask(0)),
                   R"("]},"task":{"type":")");
  job.Start(kChiefTask, {}, cluster + R"(master","index":"0"}})");
  job.Start(PsTask(0), {}, cluster + R"(ps","index":"0"}})");
  job.Start(WorkerTask(0), {}, cluster + R"(worker","index":"0"}})");
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), kSourceSteps);
}

TEST(ClusterSourcesTest, CommonFlagsOverrideTheConfiguration) {
  Job job({.ps = 1, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kSourceSteps));
  job.AddFlag("--batch_size=16");
  job.AddFlag("--training_steps=60");
  job.AddFlag("--learning_rate=0.01");
  job.AddFlag("--seed=9");
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), 60);
}

// --- TF_CONFIG as operators write it, byte for byte ---

struct Golden {
  const char* name;
  Task task;
  const char* tf_config;
  const char* world;  // as the program prints it
  const char* flag = nullptr;
};

// How GoogleTest shows a case.
void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

class GoldenTfConfigTest : public testing::TestWithParam<Golden> {};

TEST_P(GoldenTfConfigTest, IsUnderstood) {
  const Golden& golden = GetParam();
  Job job({.ps = 0, .workers = 0}, JobConfig(kSourceSteps));
  const ReservedPorts ports(1);
  std::vector<std::string> flags = {absl::StrCat("--port=", ports[0])};
  if (golden.flag != nullptr) flags.push_back(golden.flag);
  job.Start(golden.task, flags, golden.tf_config);
  job.WaitForLog(golden.task,
                 absl::StrCat("role=", golden.task.ToString(), " ", golden.world, " config="));
}

#define KEELSON_DENSE                                                                           \
  R"({"cluster":{"chief":["j-chief-0.ns.svc:2222"],"evaluator":["j-evaluator-0.ns.svc:2222"],)" \
  R"("ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222"]},)"
#define KEELSON_DENSE_WORLD                                                      \
  "world: chief=1 ps=2 worker=1 evaluator=1, from TF_CONFIG, led by chief-0 at " \
  "j-chief-0.ns.svc:2222"
#define KEELSON_NOBODY R"({"cluster":{"worker":{},"ps":[]},)"
#define KEELSON_SPARSE_LEADER ", from TF_CONFIG, led by chief-0 at an address not yet known"

const Golden kGoldens[] = {
    {"Chief", kChiefTask,
     KEELSON_DENSE R"("task":{"type":"chief","index":0},"environment":"cloud"})",
     KEELSON_DENSE_WORLD},
    {"Ps", PsTask(1), KEELSON_DENSE R"("task":{"type":"ps","index":1},"environment":"cloud"})",
     KEELSON_DENSE_WORLD},
    {"Worker", WorkerTask(0),
     KEELSON_DENSE R"("task":{"type":"worker","index":0},"environment":"cloud"})",
     KEELSON_DENSE_WORLD},
    {"Evaluator", kEvaluatorTask,
     KEELSON_DENSE R"("task":{"type":"evaluator","index":0},"environment":"cloud"})",
     KEELSON_DENSE_WORLD},
    {"EvaluatorOfAnOldOperator", kEvaluatorTask,
     R"({"cluster":{"chief":["j-chief-0:2222"],"ps":["j-ps-0:2222"],"worker":["j-worker-0:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"})",
     "world: chief=1 ps=1 worker=1 evaluator=0, from TF_CONFIG, led by chief-0 at j-chief-0:2222"},
    {"Master", kChiefTask,
     R"({"cluster":{"master":["j-master-0.ns.svc:2222"],"ps":["j-ps-0.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222"]},"task":{"type":"master","index":0},"environment":"cloud"})",
     "world: chief=1 ps=1 worker=1 evaluator=0, from TF_CONFIG, led by chief-0 at "
     "j-master-0.ns.svc:2222"},
    {"WithoutChief", WorkerTask(0),
     R"({"cluster":{"evaluator":["j-evaluator-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"})",
     "world: chief=0 ps=1 worker=1 evaluator=1, from TF_CONFIG, led by worker-0 at "
     "j-worker-0.ns3.svc:2222"},
    {"OwnPortsAndDomain", PsTask(0),
     R"({"cluster":{"chief":["j-chief-0.ns.svc.cluster.local:22223"],"ps":["j-ps-0.ns.svc.cluster.local:22221"],"worker":["j-worker-0.ns.svc.cluster.local:22222"]},"task":{"type":"ps","index":0},"environment":"cloud"})",
     "world: chief=1 ps=1 worker=1 evaluator=0, from TF_CONFIG, led by chief-0 at "
     "j-chief-0.ns.svc.cluster.local:22223"},
    {"DynamicWorker", WorkerTask(1),
     R"({"cluster":{"worker":{"1":"j-worker-1.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"]},"task":{"type":"worker","index":1}})",
     "known world: chief=0 ps=2 worker=1 evaluator=0" KEELSON_SPARSE_LEADER},
    {"DynamicWorkerOfAnOldOperator", WorkerTask(1),
     R"({"sparseCluster":{"worker":{"1":"j-worker-1.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222"]},"task":{"type":"worker","index":1}})",
     "known world: chief=0 ps=1 worker=1 evaluator=0" KEELSON_SPARSE_LEADER},
    {"DynamicPs", PsTask(1),
     R"({"cluster":{"worker":{},"ps":["j-ps-1.ns.svc:2222"]},"task":{"type":"ps","index":1}})",
     "known world: chief=0 ps=1 worker=0 evaluator=0" KEELSON_SPARSE_LEADER},
    {"DynamicChief", kChiefTask, KEELSON_NOBODY R"("task":{"type":"chief","index":0}})",
     "known world: chief=0 ps=2 worker=0 evaluator=0, from TF_CONFIG and flags, led by chief-0 at "
     "an address not yet known",
     "--ps_hosts=j-ps-{0..1}.ns.svc:2222"},
    {"DynamicEvaluator", kEvaluatorTask, KEELSON_NOBODY R"("task":{"type":"evaluator","index":0}})",
     "known world: chief=0 ps=0 worker=0 evaluator=0" KEELSON_SPARSE_LEADER},
};

// Beside a TF_CONFIG that says otherwise, too.
TEST(RankSourcesTest, AProcessLearnsItsRankFromThePyTorchJob) {
  Job job({.ps = 0, .workers = 0}, JobConfig(kSourceSteps));
  const std::map<std::string, std::string> variables = {
      {"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "j-master-0"}, {"MASTER_PORT", "23456"}};
  job.UseProgram(WorkerTask(1), "worker", variables);
  job.Start(WorkerTask(1), {}, kNoTfConfig);
  job.WaitForLog(WorkerTask(1),
                 "role=worker-1 world: chief=1 worker=2 evaluator=0 without servers, from RANK and "
                 "WORLD_SIZE, led by chief-0 at j-master-0:23456 (the others' addresses follow) "
                 "config=");
  const ReservedPorts ports(1);
  job.UseProgram(WorkerTask(0), "worker", variables);
  job.Start(WorkerTask(0), {absl::StrCat("--port=", ports[0])},
            KEELSON_DENSE R"("task":{"type":"worker","index":0},"environment":"cloud"})");
  job.WaitForLog(WorkerTask(0),
                 "from TF_CONFIG (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT are set too, and "
                 "ignored), led by chief-0 at j-chief-0.ns.svc:2222");
}

#undef KEELSON_DENSE
#undef KEELSON_DENSE_WORLD
#undef KEELSON_NOBODY
#undef KEELSON_SPARSE_LEADER

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTfConfigTest, testing::ValuesIn(kGoldens),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace keelson
