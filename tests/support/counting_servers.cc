#include "tests/support/counting_servers.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/random.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/shard_state.h"
#include "core/client/services/bulk_handler.h"
#include "core/cluster/task_proto.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

// Who compares the values with the truth.
constexpr Task kReader = {Role::kWorker, 1000};
constexpr MembershipId kReaderId = {78, 79};

}  // namespace

CountingTruth::CountingTruth(const Placement* placement) : placement_(placement) {
  for (size_t p = 0; p < placement->partitions().size(); ++p) {
    blocks_.emplace_back(placement->NumBlocks(p));
  }
}

void CountingTruth::Acknowledge(const BulkRequest& push) {
  MutexLock lock(&mu_);
  for (const BlockRange& range : push.ranges) {
    for (uint32_t b = 0; b < range.num_blocks; ++b) {
      Block& block = blocks_.at(range.partition).at(range.first_block + b);
      block.acknowledged_sequences[push.incarnation].insert(push.sequence);
    }
  }
}

void CountingTruth::Restore(int shard, const v1::ShardState& state) {
  MutexLock lock(&mu_);
  for (const size_t p : placement_->PartitionsOf(shard)) {
    std::vector<Block>& blocks = blocks_[p];
    for (Block& block : blocks) block = Block();
    for (int b = 0; b < state.blocks_size(); ++b) {
      const v1::ShardState::Block& stored = state.blocks(b);
      if (state.variables(static_cast<int>(stored.variable())) != placement_->VariableOf(p).name) {
        continue;
      }
      const int64_t element = stored.first_element() - placement_->PartitionFirstElement(p);
      Block& block = blocks.at(element / placement_->block_elements());
      block.restored = stored.updates();
      for (const v1::ShardState::WorkerSequence& applied : AppliedBy(state, b)) {
        block.restored_sequences[applied.incarnation()] = applied.sequence();
      }
    }
  }
}

int64_t CountingTruth::Expected(size_t partition, size_t block) const {
  MutexLock lock(&mu_);
  const Block& truth = blocks_.at(partition).at(block);
  int64_t expected = truth.restored;
  for (const auto& [incarnation, sequences] : truth.acknowledged_sequences) {
    const auto known = truth.restored_sequences.find(incarnation);
    const uint64_t applied = known == truth.restored_sequences.end() ? 0 : known->second;
    expected += std::distance(sequences.upper_bound(applied), sequences.end());
  }
  return expected;
}

CountingTruth::Extremes CountingTruth::AcknowledgedOf(uint64_t incarnation) const {
  MutexLock lock(&mu_);
  Extremes extremes = {INT64_MAX, 0};
  for (const std::vector<Block>& blocks : blocks_) {
    for (const Block& block : blocks) {
      const auto found = block.acknowledged_sequences.find(incarnation);
      const int64_t count = found == block.acknowledged_sequences.end()
                                ? 0
                                : static_cast<int64_t>(found->second.size());
      extremes = {std::min(extremes.fewest, count), std::max(extremes.most, count)};
    }
  }
  return extremes;
}

class CountingServers::Witness : public BulkHandler {
 public:
  Witness(BulkHandler* handler, CountingTruth* truth, MessageCount* messages)
      : handler_(handler), truth_(truth), messages_(messages) {}

  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override {
    BulkRequest header;
    ByteCursor cursor(request);
    const absl::Status decoded = DecodeBulkRequest(&cursor, &header).status();
    EXPECT_TRUE(decoded.ok()) << decoded;
    absl::StatusOr<ByteRope> response = handler_->Bulk(method, std::move(request));
    if (response.ok() && method != BulkMethod::kPull) {
      truth_->Acknowledge(header);
      messages_->Note();
    }
    return response;
  }
  bool MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) override {
    return handler_->MayAnswer(method, request, std::move(wake));
  }

 private:
  BulkHandler* const handler_;
  CountingTruth* const truth_;
  MessageCount* const messages_;
};

CountingServers::Server::Server(CountingTruth* truth, MessageCount* messages,
                                const std::string& model_dir)
    : handler({.incarnation = RandomId(), .config_hash = kConfigHash, .model_dir = model_dir},
              Clock::Real(), &end),
      witness(std::make_unique<Witness>(&handler, truth, messages)),
      service(&handler, witness.get()) {}

CountingServers::Server::~Server() {
  if (rpc != nullptr) rpc->Shutdown(absl::ZeroDuration());
}

CountingServers::CountingServers(std::vector<VariableSpec> variables, int servers)
    : CountingCluster(std::move(variables), servers),
      directory_(FreshDirectory()),
      truth_(&placement()),
      servers_(servers) {
  for (int s = 0; s < servers; ++s) {
    Start(s);
    Initialize(s);
  }
}

std::vector<int> CountingServers::Places() const {
  std::vector<int> places(size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

std::map<size_t, BulkHandler*> CountingServers::Handlers(int process) const {
  return {{static_cast<size_t>(process), servers_[process]->witness.get()}};
}

std::optional<CountedStep> CountingServers::NextStep(uint64_t) {
  if (finishing_) return std::nullopt;
  CountedStep step;
  step.step = steps_++;
  return step;
}

void CountingServers::Start(int server) {
  auto started = std::make_unique<Server>(&truth_, &messages_, directory_);
  auto rpc =
      RpcServer::Start(absl::StrCat("127.0.0.1:", port(server)), grpc::InsecureServerCredentials(),
                       {&started->service}, {started->service.RawMethods()});
  ASSERT_TRUE(rpc.ok()) << rpc.status();
  started->rpc = *std::move(rpc);
  servers_[server] = std::move(started);
}

void CountingServers::Initialize(int server) {
  v1::InitializeShardRequest request = ShardDescription();
  request.set_shard(static_cast<uint32_t>(server));
  if (snapshots_ > 0) request.set_restore_step(snapshots_);
  *request.mutable_members() = members();
  v1::InitializeShardResponse response;
  const absl::Status status = servers_[server]->handler.Initialize(request, &response);
  ASSERT_TRUE(status.ok()) << status;
}

void CountingServers::Kill(int process) { servers_[process] = nullptr; }

void CountingServers::Restore(int process) {
  // Before the server takes its first push.
  truth_.Restore(process, snapshots_ == 0 ? v1::ShardState() : StateInSnapshot(process));
  Start(process);
  Initialize(process);
}

v1::ShardState CountingServers::StateInSnapshot(int server) const {
  v1::ShardState state;
  const auto reader =
      BundleReader::Open(JoinPath(directory_, absl::StrCat("model.ckpt-", snapshots_)));
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return state;
  const auto text = (*reader)->ReadString(ShardStateName(server, size()));
  EXPECT_TRUE(text.ok() && state.ParseFromString(*text)) << text.status();
  return state;
}

void CountingServers::TakeSnapshot() {
  const std::string prefix = JoinPath(directory_, absl::StrCat("model.ckpt-", ++snapshots_));
  std::vector<BundleIndexEntry> entries;
  for (int s = 0; s < size(); ++s) {
    v1::WriteSnapshotRequest request;
    *request.mutable_header() = ChiefHeader();
    request.set_step(snapshots_);
    request.set_data_shard(static_cast<uint32_t>(s));
    request.set_num_data_shards(static_cast<uint32_t>(size()));
    v1::WriteSnapshotResponse response;
    const absl::Status status = servers_[s]->handler.WriteSnapshot(request, &response);
    ASSERT_TRUE(status.ok()) << status;
    const std::string path = DataPath(prefix, s, size());
    ASSERT_EQ(RenameFile(PendingPath(path, 0, 0), path), absl::OkStatus());
    for (auto& entry : *response.mutable_entries()) {
      entries.push_back({std::move(*entry.mutable_key()), std::move(*entry.mutable_entry())});
    }
  }
  const absl::Status status =
      WriteBundleIndex(FileSystem::Real(), prefix, size(), std::move(entries));
  ASSERT_TRUE(status.ok()) << status;
}

void CountingServers::Announce() {
  for (const auto& server : servers_) {
    if (server == nullptr) continue;
    v1::ChiefHeartbeatRequest request;
    *request.mutable_header() = ChiefHeader();
    *request.mutable_members() = members();
    v1::ShardStatus status;
    const absl::Status heard = server->handler.ChiefHeartbeat(request, &status);
    ASSERT_TRUE(heard.ok()) << heard;
  }
}

void CountingServers::ExpectTruth() {
  Join(kReader.index, kReaderId);
  for (int s = 0; s < size(); ++s) ExpectTruthOf(s);
}

void CountingServers::ExpectTruthOf(int server) {
  BulkRequest request;
  request.role = TaskToProto(kReader).role();
  request.task_index = static_cast<uint32_t>(kReader.index);
  request.incarnation = kReaderId.incarnation;
  request.membership_secret = kReaderId.secret;
  request.placement_fingerprint = placement().Fingerprint();
  for (const size_t p : placement().PartitionsOf(server)) {
    request.ranges.push_back(
        {static_cast<uint32_t>(p), 0, static_cast<uint32_t>(placement().NumBlocks(p))});
  }
  ByteRope message;
  message.AppendOwned(EncodeBulkRequest(request, 0));
  const auto answer = servers_[server]->handler.Bulk(BulkMethod::kPull, std::move(message));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ByteCursor cursor(*answer);
  BulkResponse response;
  ASSERT_TRUE(DecodeBulkResponse(&cursor, &response).ok());
  for (const BlockHeader& header : response.blocks) {
    const size_t p = header.partition;
    std::vector<float> values(placement().BlockElements(p, header.block));
    ASSERT_TRUE(cursor.Read(values.data(), values.size() * sizeof(float)));
    const auto expected = static_cast<float>(truth_.Expected(p, header.block));
    const auto wrong =
        std::find_if(values.begin(), values.end(), [&](float value) { return value != expected; });
    EXPECT_TRUE(wrong == values.end())
        << "ps-" << server << ", " << placement().VariableOf(p).name << ", block " << header.block
        << ", element " << wrong - values.begin() << ": expected " << expected << " pushes, found "
        << *wrong;
  }
}

}  // namespace keelson
