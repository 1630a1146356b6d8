// Jobs of real programs with a table on a parameter server and dense variables on workers.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "keelson/v1/train_config.pb.h"
#include "tests/e2e/job_config.h"
#include "tests/support/hybrid_config.h"
#include "tests/support/job.h"
#include "tests/support/model_difference.h"
#include "tests/support/model_directory.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int kSteps = 1500;

// A chief that does not train (or none, and worker 0 leads), a parameter server and workers.
class HybridJob : public Job {
 public:
  explicit HybridJob(const std::string& more = "")
      : HybridJob(HybridConfig(kSteps, absl::StrCat(kHybridPlacement, more)), kSteps,
                  /*workers=*/2) {}
  HybridJob(const std::string& config, int steps, int workers, bool chief = true)
      : Job({.chief = chief, .ps = 1, .workers = workers, .evaluator = Evaluator::kNone}, config),
        steps_(steps) {}

  void ExpectTrained() const {
    EXPECT_EQ(*DoneStep(model_dir()), steps_);
    EXPECT_EQ(*VerifiedLatestStep(model_dir()), steps_);
  }

 private:
  const int steps_;
};

TEST(HybridJobTest, TheTableIsOnTheServerAndTheVariablesAreOnTheWorkers) {
  HybridJob job;
  job.StartAll();
  job.ExpectAllDone();
  job.ExpectTrained();
  const Json placement = Json::parse(
      ReadFile(JoinPath(job.model_dir(), "placement.json")).value_or(""), nullptr, false);
  std::vector<std::string> shards;
  for (const Json& shard : placement.at("shards")) {
    shards.push_back(absl::StrCat(shard.value("host", "a server"), ": ",
                                  shard.at("row_partitions").get<int>(), " partitions of rows, ",
                                  shard.at("bytes").get<int>() > 0 ? "variables" : "no variables"));
  }
  EXPECT_THAT(shards, ElementsAre("a server: 256 partitions of rows, no variables",
                                  "worker-0: 0 partitions of rows, variables",
                                  "worker-1: 0 partitions of rows, variables"));
}

TEST(HybridJobTest, WorkerZeroLeadsAndHostsWithoutAChief) {
  HybridJob job(HybridConfig(kSteps, kHybridPlacement), kSteps, /*workers=*/2, /*chief=*/false);
  job.StartAll();
  job.WaitForStep(WorkerTask(0), 110);
  job.Kill(WorkerTask(0));
  job.Start(WorkerTask(0));
  job.ExpectAllDone();
  job.ExpectTrained();
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("adopting the running job at step "));
  // It was the only host of its shard, and nobody else lost anything.
  EXPECT_THAT(job.Log(WorkerTask(0)),
              HasSubstr("shard-1 of worker-0 has been restarted and restored from "));
  EXPECT_THAT(job.Log(WorkerTask(0)), Not(HasSubstr("ps-0 has been restarted")));
  EXPECT_THAT(job.Log(WorkerTask(0)), Not(HasSubstr("of worker-1 has been restarted")));
}

TEST(HybridJobTest, AKilledWorkersShardGoesToTheOther) {
  HybridJob job("collective { replicas: ALWAYS }");
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 2);
  job.WaitForStep(kChiefTask, 50);
  job.Kill(WorkerTask(1));
  job.WaitForLog(kChiefTask, "shard-2 of worker-1 is from now on shard-2 of worker-0");
  job.Start(WorkerTask(1));
  job.ExpectAllDone();
  job.ExpectTrained();
  EXPECT_THAT(job.Log(kChiefTask), Not(HasSubstr("restored from")));
}

TEST(HybridJobTest, AKilledWorkerWithoutReplicaIsRestored) {
  HybridJob job;
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  job.Kill(WorkerTask(0));
  job.Start(WorkerTask(0));
  job.ExpectAllDone();
  job.ExpectTrained();
  EXPECT_THAT(job.Log(kChiefTask),
              HasSubstr("shard-1 of worker-0 has been restarted and restored from "));
}

TEST(HybridJobTest, AKilledServerIsRestored) {
  HybridJob job("collective { replicas: ALWAYS }");
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 2);
  job.WaitForStep(kChiefTask, 110);
  job.Kill(PsTask(0));
  job.Start(PsTask(0));
  job.ExpectAllDone();
  job.ExpectTrained();
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("ps-0 has been restarted and restored from "));
  EXPECT_THAT(job.Log(kChiefTask), Not(HasSubstr("of worker-0 has been restarted")));
  EXPECT_THAT(job.Log(kChiefTask), Not(HasSubstr("of worker-1 has been restarted")));
}

// The servers and workers know no directory, and read and write no snapshot.
TEST(HybridJobTest, TheChiefMayWriteAndRestoreEveryPart) {
  HybridJob job;
  job.AddFlag(Role::kChief, "--checkpoint_writer=chief");
  for (const Role role : {Role::kPs, Role::kWorker}) {
    job.AddFlag(role, "--model_dir=" + JoinPath(FreshDirectory(), "none"));
  }
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  for (const Task& task : {PsTask(0), WorkerTask(0)}) {
    job.Kill(task);
    job.Start(task);
    job.WaitForLog(kChiefTask, absl::StrCat(task.ToString(), " has been restarted and restored"));
  }
  job.ExpectAllDone();
  job.ExpectTrained();
}

TEST(HybridJobTest, AKilledChiefTakesNothingWithIt) {
  HybridJob job("collective { replicas: ALWAYS }");
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 2);
  job.WaitForStep(kChiefTask, 50);
  job.Kill(kChiefTask);
  job.Start(kChiefTask);
  job.WaitForLog(kChiefTask, "has a replica", 2);
  job.ExpectAllDone();
  job.ExpectTrained();
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("adopting the running job at step "));
  EXPECT_THAT(job.Log(kChiefTask), Not(HasSubstr("restored from")));
}

constexpr int kStepsOfThree = 500;

// A step of three batches, of a model without thresholds: sums that differ in their last bits make
// no other steps.
std::string EvenConfigOfThree() {
  return absl::StrReplaceAll(
      HybridConfig(kStepsOfThree, kHybridPlacement),
      {{"replicas_to_aggregate: 2 total_replicas: 2", "replicas_to_aggregate: 3 total_replicas: 3"},
       {"layers { relu {} }", "layers { tanh {} }"}});
}

v1::TrainConfig FinalModelOf(const HybridJob& job) {
  v1::TrainConfig config;
  config.mutable_checkpoint()->set_model_dir(job.model_dir());
  config.mutable_train()->set_max_steps(kStepsOfThree);
  return config;
}

TEST(HybridJobTest, OneOfThreeKilledWorkersTakesNothingWithIt) {
  HybridJob undisturbed(EvenConfigOfThree(), kStepsOfThree, /*workers=*/3);
  undisturbed.StartAll();
  undisturbed.ExpectAllDone();
  HybridJob job(EvenConfigOfThree(), kStepsOfThree, /*workers=*/3);
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 50);
  job.Kill(WorkerTask(1));
  job.WaitForLog(kChiefTask, "shard-2 of worker-1 is from now on shard-2 of worker-2");
  job.ExpectAllDoneBut({WorkerTask(1)});
  job.ExpectTrained();
  EXPECT_THAT(job.Log(kChiefTask), Not(HasSubstr("restored from")));
  EXPECT_LT(DifferenceOf(FinalModelOf(job), FinalModelOf(undisturbed)).relative, 1e-5);
}

TEST(HybridErrorsTest, AGroupOnServersThatAreNotThereIsRefused) {
  const std::string path = JoinPath(FreshDirectory(), "config.textproto");
  ASSERT_TRUE(
      WriteFileAtomically(
          path, absl::StrCat(JobConfig(10), R"(placement { groups { variables: "*" on: PS } })"))
          .ok());
  const std::string tf_config =
      R"({"cluster":{"worker":["localhost:1","localhost:2"]},"task":{"type":"worker","index":1}})";
  ExpectOneError(RunProgram("worker", {"--config=" + path, "--model_dir=" + FreshDirectory()},
                            {{"TF_CONFIG", tf_config}}, absl::Seconds(30)),
                 kExitPermanent,
                 {"placement.groups[0].on: expected WORKERS in a cluster without parameter servers",
                  "found PS"});
}

}  // namespace
}  // namespace keelson
