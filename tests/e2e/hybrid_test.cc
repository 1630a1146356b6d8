// Jobs of real programs with a table on a parameter server and dense variables on workers.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/hybrid_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int kSteps = 1500;

// A chief that does not train, a parameter server and two workers.
class HybridJob : public Job {
 public:
  explicit HybridJob(const std::string& more = "")
      : Job({.ps = 1, .workers = 2, .evaluator = Evaluator::kNone},
            HybridConfig(kSteps, absl::StrCat(kHybridPlacement, more))) {}

  void ExpectTrained() const {
    EXPECT_EQ(*DoneStep(model_dir()), kSteps);
    EXPECT_EQ(*VerifiedLatestStep(model_dir()), kSteps);
  }
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
