// Jobs on emulated GPUs whose streams are executed in different orders: whatever the order, the
// same bits, so nothing is used before it is there.
#include <atomic>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "core/base/fresh_directory_testing.h"
#include "core/device/factory/device_factory.h"
#include "gmock/gmock.h"
#include "testing/device/cuda_emulation/emulation.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_difference.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

struct JobCase {
  const char* name;
  const char* device;
  v1::WireFormat push;
  v1::WireFormat pull;
};

void PrintTo(const JobCase& c, std::ostream* out) { *out << c.name; }

class EmulatedGpuTest : public testing::TestWithParam<JobCase> {
 protected:
  static v1::TrainConfig Config(const std::string& model_dir, int depth) {
    v1::TrainConfig config = SmallConfig(model_dir);
    config.mutable_train()->set_max_steps(32);
    config.mutable_transfer()->set_depth(depth);
    v1::TransferConfig::Group* group = config.mutable_transfer()->add_groups();
    group->set_variables("*");
    group->set_push(GetParam().push);
    group->set_pull(GetParam().pull);
    group->set_top_k_fraction(0.05f);
    group->set_min_elements(1);
    return config;
  }
  // What one worker trains over two servers.
  static ModelValues Train(uint64_t order_seed, int depth) {
    EXPECT_EQ(cuda_emulation::Reset({.gpus = 2, .order_seed = order_seed}), "");
    const std::string model_dir = FreshDirectory();
    LocalCluster::Options options = {2, 1, false, Config(model_dir, depth)};
    options.open_devices = [] { return CreateDevices(GetParam().device); };
    LocalCluster cluster(std::move(options));
    cluster.Start();
    cluster.ExpectDone();
    EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
    EXPECT_EQ(cuda_emulation::Leaks(), "");
    const auto values = ReadModelValues(model_dir + "/model.ckpt-32");
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *values : ModelValues();
  }
};

INSTANTIATE_TEST_SUITE_P(Cases, EmulatedGpuTest,
                         testing::Values(JobCase{"Float32", "cuda", v1::FLOAT32, v1::FLOAT32},
                                         JobCase{"Int8", "cuda", v1::INT8, v1::BFLOAT16},
                                         JobCase{"TopK", "cuda:1", v1::TOP_K, v1::FLOAT16},
                                         JobCase{"TwoGpus", "cuda:0,1", v1::BFLOAT16, v1::FLOAT32}),
                         [](const auto& info) { return info.param.name; });

TEST_P(EmulatedGpuTest, EveryOrderOfTheStreamsTrainsTheSameBits) {
  const ModelValues expected = Train(/*order_seed=*/0, /*depth=*/1);
  ASSERT_FALSE(expected.empty());
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_TRUE(Train(seed, 1) == expected) << "seed " << seed;
  }
}

TEST_P(EmulatedGpuTest, SharesAJobWithACpu) {
  ASSERT_EQ(cuda_emulation::Reset({.gpus = 2}), "");
  LocalCluster::Options options = {2, 2, false, Config(FreshDirectory(), 1)};
  options.config.mutable_train()->set_max_steps(200);
  std::atomic<int> opened = 0;
  options.open_devices = [&opened] {
    return opened++ == 0 ? CreateDevices(GetParam().device) : CreateDevices("cpu", {.threads = 1});
  };
  LocalCluster cluster(std::move(options));
  cluster.gate().CloseAt(10);
  for (int s = 0; s < 2; ++s) cluster.StartServer(s);
  cluster.StartChief();
  cluster.StartWorker(0);
  cluster.WaitForStep(1);
  cluster.StartWorker(1);
  cluster.WaitForWorkers(2);
  cluster.gate().Open();
  cluster.ExpectDone();
  const CoordinatorStatus status = cluster.chief().coordinator()->reports()->GetStatus();
  EXPECT_EQ(status.totals.steps(), 200);
  for (int w = 0; w < 2; ++w) {
    EXPECT_GT(status.workers.at({Role::kWorker, w}).steps(), 0) << "worker-" << w;
  }
  EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
}

// Gradients go to the shards of the peers, and to a worker's own one within its process, from the
// memory that the device writes.
TEST_P(EmulatedGpuTest, TrainsWithoutServersAsACpuDoes) {
  ASSERT_EQ(cuda_emulation::Reset({.gpus = 2}), "");
  v1::TrainConfig configs[2];
  for (const bool gpus : {false, true}) {
    configs[gpus] = Config(FreshDirectory(), 1);
    LocalCluster::Options options = LocalCluster::Options::Collective(
        /*chief_trains=*/false, 2, configs[gpus]);
    options.open_devices = [gpus] {
      return gpus ? CreateDevices(GetParam().device) : CreateDevices("cpu", {.threads = 1});
    };
    LocalCluster cluster(std::move(options));
    cluster.Start();
    cluster.ExpectDone();
  }
  EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
  EXPECT_EQ(cuda_emulation::Leaks(), "");
  if (GetParam().push == v1::FLOAT32) {
    EXPECT_LT(DifferenceOf(configs[0], configs[1]).relative, 1e-4);
  }
}

TEST_P(EmulatedGpuTest, Depth2TrainsToTheEnd) { EXPECT_FALSE(Train(1, 2).empty()); }

}  // namespace
}  // namespace keelson
