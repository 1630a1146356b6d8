#include "ps_server/service/shard_testing.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/wire/value_codec.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

std::vector<BlockRange> AllBlocks(const Placement& placement, size_t shard) {
  std::vector<BlockRange> ranges;
  for (const size_t p : placement.PartitionsOf(shard)) {
    ranges.push_back({static_cast<uint32_t>(p), 0, static_cast<uint32_t>(placement.NumBlocks(p))});
  }
  return ranges;
}

// Encodes `select(variable, element)` for each element of the ranges, in their format.
std::string Payload(const Placement& placement, const std::vector<BlockRange>& ranges,
                    absl::FunctionRef<float(int, int64_t)> select) {
  std::string payload;
  for (const BlockRange& range : ranges) {
    const size_t p = range.partition;
    for (uint32_t b = range.first_block; b < range.first_block + range.num_blocks; ++b) {
      const int64_t first = placement.PartitionFirstElement(p) + b * placement.block_elements();
      std::vector<float> gradient;
      for (int64_t e = first; e < first + placement.BlockElements(p, b); ++e) {
        gradient.push_back(select(placement.partition(p).variable, e));
      }
      payload += EncodeGradient(range.format, gradient);
    }
  }
  return payload;
}

std::vector<float> DecodeTopK(const std::string& bytes, int64_t elements) {
  uint32_t count;
  std::memcpy(&count, bytes.data(), sizeof(count));
  std::vector<float> decoded(elements);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t position;
    std::memcpy(&position, bytes.data() + 4 + 4 * i, sizeof(position));
    std::memcpy(&decoded[position], bytes.data() + 4 + 4 * (count + i), sizeof(float));
  }
  return decoded;
}

std::vector<float> DecodeInt8(const std::string& bytes, int64_t elements) {
  std::vector<float> decoded(elements);
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  for (int64_t first = 0; first < elements; first += kInt8GroupElements) {
    const size_t size = std::min(kInt8GroupElements, elements - first);
    float scale;
    std::memcpy(&scale, from, sizeof(scale));
    DecodeInt8Group(scale, from + sizeof(scale), {decoded.data() + first, size});
    from += sizeof(scale) + size;
  }
  return decoded;
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

Placement TestPlacement(size_t num_shards) {
  return Placement::Compute(TestVariables(), num_shards, /*block_elements=*/1000);
}

v1::OptimizerConfig OptimizerFromText(const std::string& text) {
  v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

ShardStore::Options StoreOptions(Placement placement, size_t shard, const std::string& optimizer) {
  v1::LearningRateConfig learning_rate;
  learning_rate.set_base(kTestLearningRate);
  VariableOptimizers optimizers = *VariableOptimizers::Create(
      {OptimizerFromText(optimizer), {}, kTestLearningRate}, placement.variables());
  TableOptimizers table_optimizers = *TableOptimizers::Create(
      {OptimizerFromText(optimizer), {}, kTestLearningRate}, placement.tables());
  return {std::move(placement),
          shard,
          std::move(optimizers),
          std::move(table_optimizers),
          *LearningRateSchedule::Create(learning_rate, 0),
          kTestSeed};
}

float TestGradient(size_t variable, int64_t element, uint64_t sequence) {
  const uint64_t stream = sequence * 100 + static_cast<uint64_t>(variable);
  return UniformFloat(Philox(1, stream, static_cast<uint64_t>(element))[0]) - 0.5f;
}

std::string BytesOf(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::string EncodeGradient(WireFormat format, const std::vector<float>& gradient) {
  const auto elements = static_cast<int64_t>(gradient.size());
  std::vector<float> residual(gradient.size());
  std::string bytes;
  if (format == WireFormat::kTopK) {
    EncodeTopK(gradient, (elements + 3) / 4, absl::MakeSpan(residual), &bytes);
    return bytes;
  }
  bytes.resize(EncodedBytes(format, elements));
  auto* to = reinterpret_cast<uint8_t*>(bytes.data());
  if (format == WireFormat::kInt8) {
    EncodeInt8(gradient, absl::MakeSpan(residual), to);
  } else {
    EncodeElements(format, gradient, to);
  }
  return bytes;
}

std::vector<float> DecodeGradient(WireFormat format, const std::string& bytes, int64_t elements) {
  if (format == WireFormat::kTopK) return DecodeTopK(bytes, elements);
  if (format == WireFormat::kInt8) return DecodeInt8(bytes, elements);
  std::vector<float> decoded(elements);
  DecodeElements(format, reinterpret_cast<const uint8_t*>(bytes.data()), absl::MakeSpan(decoded));
  return decoded;
}

ByteRope Fragmented(absl::string_view bytes, size_t longest, uint64_t seed) {
  ByteRope rope;
  for (uint64_t i = 0; !bytes.empty(); ++i) {
    const size_t size = std::min<size_t>(1 + Philox(seed, 0, i)[0] % longest, bytes.size());
    rope.AppendCopy(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return rope;
}

bool ApplyTo(Block* block, const Optimizer& optimizer, const PushIdentity& push,
             const std::vector<float>& gradient) {
  ByteRope rope;
  rope.AppendBorrowed(gradient.data(), gradient.size() * sizeof(float));
  ByteCursor cursor(rope);
  return block->Apply(optimizer, push, {WireFormat::kFloat32, &cursor});
}

ByteRope MessageOf(const TestRequest& request) {
  ByteRope message;
  message.AppendOwned(EncodeBulkRequest(request.header, request.payload.size()));
  message.AppendCopy(request.payload);
  return message;
}

TestResponse ParseResponse(const ByteRope& message) {
  TestResponse response;
  ByteCursor cursor(message);
  const absl::StatusOr<size_t> payload_bytes = DecodeBulkResponse(&cursor, &response.header);
  EXPECT_TRUE(payload_bytes.ok()) << payload_bytes.status();
  if (!payload_bytes.ok()) return response;
  response.payload.resize(*payload_bytes);
  EXPECT_TRUE(cursor.Read(response.payload.data(), *payload_bytes));
  EXPECT_EQ(cursor.remaining(), 0u);
  return response;
}

absl::StatusOr<TestResponse> CallBulk(BulkHandler* server, BulkMethod method,
                                      const TestRequest& request) {
  const absl::StatusOr<ByteRope> response = server->Bulk(method, MessageOf(request));
  if (!response.ok()) return response.status();
  return ParseResponse(*response);
}

v1::InitializeShardRequest InitializeRequest(const Placement& placement, size_t shard,
                                             const std::string& optimizer) {
  v1::InitializeShardRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_config_hash(kTestConfigHash);
  request.set_shard(static_cast<uint32_t>(shard));
  *request.mutable_placement() = placement.ToProto();
  request.set_placement_fingerprint(placement.Fingerprint());
  *request.mutable_optimizer() = OptimizerFromText(optimizer);
  request.mutable_learning_rate()->set_base(kTestLearningRate);
  request.set_seed(kTestSeed);
  *request.mutable_members() = TestMembers(1);
  return request;
}

TestRequest PullOf(const Placement& placement, size_t shard) {
  TestRequest request;
  request.header.role = v1::ROLE_WORKER;
  request.header.membership_secret = kTestSecret;
  request.header.placement_fingerprint = placement.Fingerprint();
  request.header.ranges = AllBlocks(placement, shard);
  return request;
}

TestRequest EncodedPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                          uint64_t sequence, WireFormat format, WireFormat pull_format) {
  TestRequest request = PullOf(placement, shard);
  for (BlockRange& range : request.header.ranges) {
    range.format = format;
    range.pull_format = pull_format;
  }
  request.header.incarnation = incarnation;
  request.header.sequence = sequence;
  request.header.last_part = true;
  request.payload = Payload(
      placement, request.header.ranges,
      [&](size_t variable, int64_t element) { return TestGradient(variable, element, sequence); });
  return request;
}

TestRequest PushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                   uint64_t sequence) {
  return EncodedPushOf(placement, shard, incarnation, sequence, WireFormat::kFloat32,
                       WireFormat::kFloat32);
}

TestRequest ConstantPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                           uint64_t sequence, float gradient) {
  TestRequest request = PushOf(placement, shard, incarnation, sequence);
  request.payload =
      Payload(placement, request.header.ranges, [&](int, int64_t) { return gradient; });
  return request;
}

TestRequest StagedPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                         uint64_t sequence, const RoundId& round, float weight, float gradient) {
  TestRequest request = ConstantPushOf(placement, shard, incarnation, sequence, gradient);
  request.header.step = round.round;
  request.header.round = round.round;
  request.header.attempt = round.attempt;
  request.header.weight = weight;
  return request;
}

void Receive(const Placement& placement, const TestResponse& response, Arrays* arrays) {
  const char* from = response.payload.data();
  for (const BlockHeader& block : response.header.blocks) {
    const size_t p = block.partition;
    const VariableSpec& variable = placement.VariableOf(p);
    std::vector<float>& values = (*arrays)[variable.name];
    values.resize(variable.shape.num_elements());
    const int64_t first =
        placement.PartitionFirstElement(p) + block.block * placement.block_elements();
    const size_t bytes = placement.BlockElements(p, block.block) * sizeof(float);
    std::memcpy(values.data() + first, from, bytes);
    from += bytes;
  }
  EXPECT_EQ(from, response.payload.data() + response.payload.size());
}

TestServer::TestServer(const std::string& directory)
    : model_dir(directory),
      handler({.incarnation = 9, .config_hash = kTestConfigHash, .model_dir = directory}, &clock,
              &end) {}

TestServers NewServers(size_t count, const std::string& model_dir) {
  TestServers servers;
  for (size_t s = 0; s < count; ++s) servers.push_back(std::make_unique<TestServer>(model_dir));
  return servers;
}

TestServers StartServers(const Placement& placement, const std::string& optimizer,
                         const std::string& model_dir, std::optional<int64_t> restore_step) {
  TestServers servers = NewServers(placement.num_shards(), model_dir);
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    v1::InitializeShardRequest request = InitializeRequest(placement, s, optimizer);
    if (restore_step.has_value()) request.set_restore_step(*restore_step);
    v1::InitializeShardResponse response;
    const absl::Status status = servers[s]->handler.Initialize(request, &response);
    EXPECT_TRUE(status.ok()) << status;
  }
  return servers;
}

v1::WriteSnapshotRequest SnapshotRequest(int64_t step, size_t shard, size_t num_shards) {
  v1::WriteSnapshotRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_step(step);
  request.set_data_shard(static_cast<uint32_t>(shard));
  request.set_num_data_shards(static_cast<uint32_t>(num_shards));
  return request;
}

std::string WriteBundle(const std::vector<ParameterControl*>& servers, const std::string& model_dir,
                        int64_t step) {
  const std::string prefix = JoinPath(model_dir, absl::StrCat("model.ckpt-", step));
  std::vector<BundleIndexEntry> entries;
  for (size_t s = 0; s < servers.size(); ++s) {
    v1::WriteSnapshotResponse response;
    const absl::Status status =
        servers[s]->WriteSnapshot(SnapshotRequest(step, s, servers.size()), &response);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GT(response.bytes_written(), 0);
    const std::string path = DataPath(prefix, s, servers.size());
    EXPECT_EQ(RenameFile(PendingPath(path, kTestChief, 0), path), absl::OkStatus());
    for (const auto& entry : response.entries()) entries.push_back({entry.key(), entry.entry()});
  }
  const absl::Status status =
      WriteBundleIndex(FileSystem::Real(), prefix, servers.size(), std::move(entries));
  EXPECT_TRUE(status.ok()) << status;
  return prefix;
}

Arrays PullAll(const Placement& placement, const TestServers& servers) {
  Arrays arrays;
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    const auto response = CallBulk(&servers[s]->handler, BulkMethod::kPull, PullOf(placement, s));
    EXPECT_TRUE(response.ok()) << response.status();
    if (response.ok()) Receive(placement, *response, &arrays);
  }
  return arrays;
}

v1::RequestHeader HeaderOf(uint64_t incarnation) {
  v1::RequestHeader header;
  header.set_incarnation(incarnation);
  header.set_chief_term(incarnation);
  return header;
}

v1::ShardStatus StatusOf(ParameterControl* service) {
  v1::ShardStatus status;
  EXPECT_TRUE(service->GetStatus({}, &status).ok());
  return status;
}

absl::Status CommitRound(ParameterControl* service, const RoundId& round, uint32_t contributions) {
  v1::CommitRoundRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_round(round.round);
  request.set_attempt(round.attempt);
  request.set_contributions(contributions);
  v1::CommitRoundResponse response;
  RETURN_IF_ERROR(service->CommitRound(request, &response));
  EXPECT_EQ(response.shard_step(), StatusOf(service).shard_step());
  return absl::OkStatus();
}

v1::MemberList TestMembers(uint64_t epoch, const std::set<uint64_t>& without,
                           const std::set<uint64_t>& others) {
  std::set<uint64_t> incarnations = others;
  for (uint64_t incarnation = 0; incarnation < 300; ++incarnation) incarnations.insert(incarnation);
  v1::MemberList list;
  list.set_epoch(epoch);
  for (const uint64_t incarnation : incarnations) {
    if (without.contains(incarnation)) continue;
    v1::MemberList::Member* const member = list.add_members();
    member->mutable_task()->set_role(v1::ROLE_WORKER);
    member->set_incarnation(incarnation);
    member->set_membership_secret(kTestSecret);
  }
  return list;
}

void Announce(ParameterControl* service, const std::set<uint64_t>& without,
              const std::set<uint64_t>& others) {
  v1::ChiefHeartbeatRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  *request.mutable_members() = TestMembers(StatusOf(service).member_epoch() + 1, without, others);
  v1::ShardStatus response;
  const absl::Status status = service->ChiefHeartbeat(request, &response);
  ASSERT_TRUE(status.ok()) << status;
}

void PushAll(const Placement& placement, const TestServers& servers, uint64_t incarnation,
             uint64_t sequence) {
  for (size_t s = 0; s < placement.num_shards(); ++s) {
    const auto response = CallBulk(&servers[s]->handler, BulkMethod::kPush,
                                   PushOf(placement, s, incarnation, sequence));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->header.duplicate_blocks, 0u);
  }
}

}  // namespace keelson
