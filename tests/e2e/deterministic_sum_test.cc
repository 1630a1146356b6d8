// Jobs that add gradients in the order of a step's batches come to the same values bit by bit.
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "keelson/v1/train_config.pb.h"
#include "tests/e2e/collective_testing.h"
#include "tests/e2e/job_config.h"
#include "tests/support/model_difference.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kSummedSteps = 300;

v1::TrainConfig LastModelOf(const Job& job, int steps) {
  v1::TrainConfig config;
  config.mutable_checkpoint()->set_model_dir(job.model_dir());
  config.mutable_train()->set_max_steps(steps);
  return config;
}

void ExpectSameBits(const Job& found, const Job& expected, int steps = kSummedSteps) {
  EXPECT_EQ(DifferenceOf(LastModelOf(found, steps), LastModelOf(expected, steps)).absolute, 0);
}

std::string OrderedConfig(const std::string& rest, const std::string& mode = "") {
  return absl::StrCat(JobConfig(kSummedSteps), "consistency { deterministic_sum: true ", mode, "} ",
                      rest);
}

struct OrderedJob {
  std::string name;
  std::string rest;  // of the configuration
  std::string mode = "";
};

class DeterministicSumTest : public testing::TestWithParam<OrderedJob> {};

// What int8 and top-k leave out of a gradient stays at its worker, so that each batch has to be
// computed by the same one, from the first step on.
INSTANTIATE_TEST_SUITE_P(
    Jobs, DeterministicSumTest,
    testing::Values(
        OrderedJob{"Float32", ""},
        OrderedJob{"SeveralTicketsPerWorker",
                   "transfer { groups { variables: '*' push: BFLOAT16 pull: BFLOAT16 } }",
                   "mode { synchronous { replicas_to_aggregate: 7 } }"},
        OrderedJob{"Int8",
                   "transfer { groups { variables: '*' push: INT8 } } collective { min_workers: 3 "
                   "}"},
        OrderedJob{"TopK",
                   "transfer { groups { variables: '*' push: TOP_K top_k_fraction: 0.1 } } "
                   "collective { min_workers: 3 replicas: NEVER }"}),
    [](const auto& info) { return info.param.name; });

TEST_P(DeterministicSumTest, TwoRunsOfThreeProcessesHaveTheSameBits) {
  const std::string config = OrderedConfig(GetParam().rest, GetParam().mode);
  CollectiveJob first(config, /*chief=*/true, Job::Evaluator::kNone);
  CollectiveJob second(config, /*chief=*/true, Job::Evaluator::kNone);
  for (CollectiveJob* job : {&first, &second}) {
    job->StartAll();
    job->ExpectAllDone();
    job->ExpectTrained(kSummedSteps);
  }
  ExpectSameBits(second, first);
}

// Its batches are computed by others, in another attempt, and its shard is served by its replica.
TEST(DeterministicSumFailureTest, AKilledWorkerChangesNoBit) {
  const std::string config = OrderedConfig("");
  CollectiveJob undisturbed(config, /*chief=*/true, Job::Evaluator::kNone);
  undisturbed.StartAll();
  undisturbed.ExpectAllDone();
  CollectiveJob job(config, /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 50);
  job.Kill(WorkerTask(1));
  job.ExpectAllDoneBut({WorkerTask(1)});
  job.ExpectTrained(kSummedSteps);
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("lost worker-1"));
  EXPECT_THAT(job.Log(kChiefTask), Not(HasSubstr("restored from")));
  ExpectSameBits(job, undisturbed);
}

// Rows of tables, too.
TEST(DeterministicSumServersTest, TwoRunsWithServersHaveTheSameBits) {
  constexpr int kSteps = 60;
  const std::string config = absl::StrCat(
      ReadFile(JoinPath(std::getenv("KEELSON_SOURCE_DIR"), "configs/ctr_fm.textproto")).value(),
      "consistency { mode { synchronous { replicas_to_aggregate: 3 } } deterministic_sum: true }");
  const Job::Layout layout = {.ps = 2, .workers = 3, .evaluator = Job::Evaluator::kNone};
  Job first(layout, config);
  Job second(layout, config);
  for (Job* job : {&first, &second}) {
    job->AddFlag(absl::StrCat("--training_steps=", kSteps));
    job->StartAll();
    job->ExpectAllDone();
  }
  ExpectSameBits(second, first, kSteps);
}

}  // namespace
}  // namespace keelson
