// What the processes of a job without parameter servers hold of the model.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/client/services/shard_control.h"
#include "gtest/gtest.h"
#include "tests/e2e/collective_testing.h"
#include "tests/e2e/job_config.h"

namespace keelson {
namespace {

// Of JobConfig: two kernels and two biases.
constexpr int64_t kModelBytes = 4 * (784 * 128 + 128 + 128 * 10 + 10);
// Adam's, of each element.
constexpr int64_t kSlots = 2;
// Rows are not divided.
constexpr double kImbalance = 0.05;

class CollectiveMemoryTest : public testing::TestWithParam<int> {
 protected:
  static std::string Config() {
    return absl::StrReplaceAll(JobConfig(kEndless), {{"momentum { momentum: 0.9 }", "adam {}"},
                                                     {"base: 0.02", "base: 0.001"}}) +
           "collective { replicas: ALWAYS }";
  }

  // What the process of this worker holds of a shard; EMPTY: nothing.
  v1::ShardStatus HeldAt(int worker, int shard) const {
    const Task task = WorkerTask(worker);
    ShardControl control(static_cast<uint32_t>(shard),
                         ConnectParameterControl(task.ToString(), job_.Address(task),
                                                 job_.MemberCredentials("operator")));
    v1::ShardStatus status;
    EXPECT_EQ(control.GetStatus({}, &status), absl::OkStatus());
    return status;
  }

  CollectiveJob job_{Config(), /*chief=*/false, Job::Evaluator::kNone, GetParam()};
};

TEST_P(CollectiveMemoryTest, ValuesAndSlotsAreDividedAndTheReplicaIsAsMuchAgain) {
  const int hosts = GetParam();
  const int copies = hosts > 1 ? 2 : 1;
  job_.StartAll();
  job_.WaitForStep(job_.leader(), 10);
  if (copies > 1) job_.WaitForLog(job_.leader(), "has a replica", hosts);
  int64_t values_of_shards = 0;
  for (int worker = 0; worker < hosts; ++worker) {
    int64_t values = 0;
    int64_t slots = 0;
    int held = 0;
    for (int shard = 0; shard < hosts; ++shard) {
      const v1::ShardStatus status = HeldAt(worker, shard);
      if (status.state() != v1::ShardStatus::READY) continue;
      ++held;
      values += status.value_bytes();
      slots += status.slot_bytes();
      if (shard == worker) values_of_shards += status.value_bytes();
    }
    EXPECT_EQ(held, copies) << "worker-" << worker;
    EXPECT_EQ(slots, kSlots * values) << "worker-" << worker;
    const double share = static_cast<double>(copies) * kSlots * kModelBytes / hosts;
    EXPECT_NEAR(static_cast<double>(slots), share, kImbalance * share) << "worker-" << worker;
  }
  EXPECT_EQ(values_of_shards, kModelBytes);
}

INSTANTIATE_TEST_SUITE_P(Hosts, CollectiveMemoryTest, testing::Values(1, 2, 4),
                         [](const auto& info) { return absl::StrCat(info.param, "Hosts"); });

}  // namespace
}  // namespace keelson
