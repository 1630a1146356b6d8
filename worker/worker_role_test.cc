#include "worker/worker_role.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

std::string TextOf(const std::vector<BulkServer>& servers) {
  return absl::StrJoin(servers, " ", [](std::string* text, const BulkServer& server) {
    absl::StrAppend(text, server.name, "=", server.address);
  });
}

TEST(NameServersTest, ShardsOfACollectiveClusterAreWhereTheChiefSays) {
  ClusterSpec cluster;
  cluster.distributed = true;
  cluster.self = {Role::kWorker, 1};
  cluster.workers = {{0, "a:1"}, {1, "b:1"}, {2, "c:1"}};
  EXPECT_EQ(TextOf(NameServers(ShardLayout({}, cluster), cluster, {"a:1", "c:1", "c:1"})),
            "worker-0=a:1 worker-2=c:1 worker-2=c:1");
  EXPECT_EQ(TextOf(NameServers(ShardLayout({}, cluster), cluster, {"a:1", "new:1"})),
            "worker-0=a:1 shard-1=new:1");
}

TEST(NameServersTest, ShardsOfServersComeBeforeThoseOfWorkers) {
  ClusterSpec cluster;
  cluster.distributed = true;
  cluster.self = {Role::kWorker, 0};
  cluster.workers = {{0, "a:1"}, {1, "b:1"}};
  cluster.ps = {{0, "p:1"}};
  v1::TrainConfig config;
  config.mutable_placement()->add_groups()->set_on(v1::PlacementConfig::Group::WORKERS);
  EXPECT_EQ(TextOf(NameServers(ShardLayout(config, cluster), cluster, {"x:1", "b:1", "b:1"})),
            "ps-0=p:1 worker-1=b:1 worker-1=b:1");
}

TEST(NameServersTest, OfProcessesThatRegisterOnesOwnAndTheLeaderAreKnown) {
  ClusterSpec cluster;
  cluster.distributed = true;
  cluster.self = {Role::kWorker, 0};
  cluster.world_size = cluster.min_workers = 3;
  cluster.chief = {{0, "a:1"}};
  cluster.workers = {{0, "b:1"}};
  EXPECT_EQ(TextOf(NameServers(ShardLayout({}, cluster), cluster, {"a:1", "b:1", "c:1"})),
            "chief-0=a:1 worker-0=b:1 shard-2=c:1");
}

TEST(NameServersTest, ParameterServersAreWhereTheWorkersClusterSays) {
  ClusterSpec cluster;
  cluster.distributed = true;
  cluster.self = {Role::kWorker, 0};
  cluster.workers = {{0, "a:1"}};
  cluster.ps = {{0, "p:1"}, {1, "q:1"}};
  EXPECT_EQ(TextOf(NameServers(ShardLayout({}, cluster), cluster, {"x:1", "y:1"})),
            "ps-0=p:1 ps-1=q:1");
  EXPECT_EQ(TextOf(NameServers(ShardLayout({}, cluster), cluster, {"x:1"})), "ps-0=x:1")
      << "it knows others";
}

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

TEST(ExchangeFlagsTest, NameTheSocketToAServerOfTheSameHost) {
  WorkerFlags flags;
  CLI::App app;
  AddExchangeFlags(&app, &flags);
  EXPECT_EQ(flags.bulk.local_route, LocalRoute::kMemory);
  app.parse("--bulk_socket=tcp");
  EXPECT_EQ(flags.bulk.local_route, LocalRoute::kTcp);
  app.parse("--bulk_socket=unix");
  EXPECT_EQ(flags.bulk.local_route, LocalRoute::kUnix);
  app.parse("--bulk_socket=memory");
  EXPECT_EQ(flags.bulk.local_route, LocalRoute::kMemory);
  try {
    app.parse("--bulk_socket=auto");
    ADD_FAILURE() << "it was taken";
  } catch (const CLI::ParseError& error) {
    EXPECT_STREQ(error.what(), "--bulk_socket: auto not in {memory,unix,tcp}");
  }
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
