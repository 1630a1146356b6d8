#include "ps_server/shard_testing.h"

#include <google/protobuf/text_format.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/random.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

void AddAllBlocks(const Placement& placement, int shard,
                  google::protobuf::RepeatedPtrField<v1::BlockRange>* ranges) {
  for (const int p : placement.PartitionsOf(shard)) {
    v1::BlockRange* range = ranges->Add();
    range->set_partition(static_cast<uint32_t>(p));
    range->set_num_blocks(static_cast<uint32_t>(placement.NumBlocks(p)));
  }
}

// `select(variable, element)` for each element of the shard, in the order of AddAllBlocks.
std::string Payload(const Placement& placement, int shard,
                    absl::FunctionRef<float(int, int64_t)> select) {
  std::vector<float> elements;
  for (const int p : placement.PartitionsOf(shard)) {
    const int64_t first = placement.PartitionFirstElement(p);
    for (int64_t e = first; e < first + placement.PartitionElements(p); ++e) {
      elements.push_back(select(placement.partition(p).variable, e));
    }
  }
  return BytesOf(elements);
}

}  // namespace

std::vector<VariableSpec> TestVariables() {
  const Initializer uniform = {Initializer::Kind::kUniform, -0.5f, 0.5f};
  const Initializer normal = {Initializer::Kind::kNormal, 0, 0.1f};
  const Initializer quarter = {Initializer::Kind::kConstant, 0.25f, 0};
  return {{"conv/kernel", Shape({5, 5, 3, 40}), normal},
          {"dense/bias", Shape({17}), quarter},
          {"dense/kernel", Shape({300, 17}), uniform},
          {"out/kernel", Shape({1000, 7}), uniform},
          {"scale", Shape({}), quarter}};
}

Placement TestPlacement(int num_shards) {
  return Placement::Compute(TestVariables(), num_shards, /*block_elements=*/1000);
}

v1::OptimizerConfig OptimizerFromText(const std::string& text) {
  v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

BlockStore::Options StoreOptions(Placement placement, int shard, const std::string& optimizer) {
  v1::LearningRateConfig learning_rate;
  learning_rate.set_base(kTestLearningRate);
  return {std::move(placement), shard, *CreateOptimizer(OptimizerFromText(optimizer)),
          *LearningRateSchedule::Create(learning_rate, 0)};
}

float TestGradient(int variable, int64_t element, uint64_t sequence) {
  const uint64_t stream = sequence * 100 + static_cast<uint64_t>(variable);
  return UniformFloat(Philox(1, stream, static_cast<uint64_t>(element))[0]) - 0.5f;
}

std::string BytesOf(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

v1::InitializeShardRequest InitializeRequest(const Placement& placement, int shard,
                                             const std::string& optimizer) {
  v1::InitializeShardRequest request;
  request.mutable_header()->set_incarnation(kTestChief);
  request.set_config_hash(kTestConfigHash);
  request.set_shard(static_cast<uint32_t>(shard));
  *request.mutable_placement() = placement.ToProto();
  request.set_placement_fingerprint(placement.Fingerprint());
  *request.mutable_optimizer() = OptimizerFromText(optimizer);
  request.mutable_learning_rate()->set_base(kTestLearningRate);
  request.set_seed(kTestSeed);
  return request;
}

v1::PullRequest PullOf(const Placement& placement, int shard) {
  v1::PullRequest request;
  request.set_placement_fingerprint(placement.Fingerprint());
  AddAllBlocks(placement, shard, request.mutable_ranges());
  return request;
}

v1::PushRequest PushOf(const Placement& placement, int shard, uint64_t incarnation,
                       uint64_t sequence) {
  v1::PushRequest request;
  request.mutable_header()->set_incarnation(incarnation);
  request.set_placement_fingerprint(placement.Fingerprint());
  request.set_sequence(sequence);
  request.set_last_part(true);
  AddAllBlocks(placement, shard, request.mutable_ranges());
  request.set_payload(Payload(placement, shard, [&](int variable, int64_t element) {
    return TestGradient(variable, element, sequence);
  }));
  return request;
}

v1::PushRequest ConstantPushOf(const Placement& placement, int shard, uint64_t incarnation,
                               uint64_t sequence, float gradient) {
  v1::PushRequest request = PushOf(placement, shard, incarnation, sequence);
  request.set_payload(Payload(placement, shard, [&](int, int64_t) { return gradient; }));
  return request;
}

void Receive(const Placement& placement, const v1::PullResponse& response, Arrays* arrays) {
  const char* from = response.payload().data();
  for (const v1::BlockHeader& block : response.blocks()) {
    const int p = static_cast<int>(block.partition());
    const VariableSpec& variable = placement.VariableOf(p);
    std::vector<float>& values = (*arrays)[variable.name];
    values.resize(static_cast<size_t>(variable.shape.num_elements()));
    const int64_t first =
        placement.PartitionFirstElement(p) + block.block() * placement.block_elements();
    const size_t bytes =
        static_cast<size_t>(placement.BlockElements(p, block.block())) * sizeof(float);
    std::memcpy(values.data() + first, from, bytes);
    from += bytes;
  }
  EXPECT_EQ(from, response.payload().data() + response.payload().size());
}

TestServers NewServers(int count) {
  TestServers servers;
  for (int s = 0; s < count; ++s) servers.push_back(std::make_unique<TestServer>());
  return servers;
}

TestServers StartServers(const Placement& placement, const std::string& optimizer,
                         const std::string& restore_prefix) {
  TestServers servers = NewServers(placement.num_shards());
  for (int s = 0; s < placement.num_shards(); ++s) {
    v1::InitializeShardRequest request = InitializeRequest(placement, s, optimizer);
    request.set_restore_prefix(restore_prefix);
    v1::InitializeShardResponse response;
    const absl::Status status =
        servers[static_cast<size_t>(s)]->handler.Initialize(request, &response);
    EXPECT_TRUE(status.ok()) << status;
  }
  return servers;
}

Arrays PullAll(const Placement& placement, const TestServers& servers) {
  Arrays arrays;
  for (int s = 0; s < placement.num_shards(); ++s) {
    v1::PullResponse response;
    const absl::Status status =
        servers[static_cast<size_t>(s)]->handler.Pull(PullOf(placement, s), &response);
    EXPECT_TRUE(status.ok()) << status;
    Receive(placement, response, &arrays);
  }
  return arrays;
}

void PushAll(const Placement& placement, const TestServers& servers, uint64_t incarnation,
             uint64_t sequence) {
  for (int s = 0; s < placement.num_shards(); ++s) {
    v1::PushResponse response;
    const absl::Status status = servers[static_cast<size_t>(s)]->handler.Push(
        PushOf(placement, s, incarnation, sequence), &response);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(response.duplicate_blocks(), 0u);
  }
}

std::string NewTestDirectory() {
  std::string path = testing::TempDir() + "/keelson_ps_server_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

}  // namespace keelson
