#include "worker/worker_role.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ComputeThreadsTest, WorkersOfAHostShareItsCores) {
  ClusterSpec cluster;
  cluster.self = {Role::kWorker, 1};
  cluster.workers = {{0, "a:2222"}, {1, "b:2222"}, {2, "b:2223"}, {3, "b:2224"}};
  EXPECT_EQ(ComputeThreads(cluster, 16), 5);
  EXPECT_EQ(ComputeThreads(cluster, 2), 1);
  cluster.self.index = 0;
  EXPECT_EQ(ComputeThreads(cluster, 16), 16);
}

TEST(ComputeThreadsTest, AloneItHasAllCores) { EXPECT_EQ(ComputeThreads({}, 4), 4); }

class OpenWorkerDevicesTest : public testing::Test {
 protected:
  absl::Status Open() { return OpenWorkerDevices(flags_, {}).status(); }

  WorkerFlags flags_;
};

TEST_F(OpenWorkerDevicesTest, OpensWhatTheFlagsName) {
  flags_.device = "cpu";
  flags_.compute_threads = 1;
  const auto devices = OpenWorkerDevices(flags_, {});
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ((*devices)->size(), 1);
  EXPECT_NE((*devices)->name().find("1 thread"), std::string::npos) << (*devices)->name();
}

TEST_F(OpenWorkerDevicesTest, OtherNamesAreRefused) {
  flags_.device = "abacus";
  EXPECT_EQ(Open().code(), absl::StatusCode::kInvalidArgument);
  flags_ = {};
  flags_.device = "cpu";
  flags_.precision = "half";
  EXPECT_EQ(Open(), absl::InvalidArgumentError(
                        "precision: expected float32, tf32 or bfloat16, found \"half\""));
  flags_.precision = "tf32";
  EXPECT_EQ(Open().code(), absl::StatusCode::kInvalidArgument) << "the CPU has one only";
}

class TransferOptionsTest : public testing::Test {
 protected:
  ShardedParameterClient::Options OptionsFor(int64_t elements, int64_t depth, int shards = 1) {
    const std::vector<VariableSpec> variables = {{"w", Shape({elements}), {}}};
    v1::TrainConfig config;
    config.mutable_transfer()->set_depth(depth);
    v1::TransferConfig::Group* group = config.mutable_transfer()->add_groups();
    group->set_variables("w");
    group->set_push(v1::INT8);
    return TransferOptions(config, variables, Placement::Compute(variables, shards));
  }
};

TEST_F(TransferOptionsTest, CarriesFormatsAndDepth) {
  const ShardedParameterClient::Options options = OptionsFor(2000, 1);
  ASSERT_EQ(options.formats.size(), 1u);
  EXPECT_EQ(options.formats[0].push, WireFormat::kInt8);
  EXPECT_EQ(options.formats[0].pull, WireFormat::kFloat32);
  EXPECT_EQ(options.depth, 1);
  EXPECT_EQ(OptionsFor(2000, 2).depth, 2);
}

TEST_F(TransferOptionsTest, WorksInTheBackgroundWhereThatHidesSomething) {
  EXPECT_FALSE(OptionsFor(1 << 20, 1).background) << "one message, sent when all is computed";
  EXPECT_TRUE(OptionsFor(2 << 20, 1).background);
  EXPECT_FALSE(OptionsFor(2 << 20, 1, /*shards=*/2).background) << "one message per shard";
  EXPECT_TRUE(OptionsFor(2000, 2).background);
}

}  // namespace
}  // namespace keelson
