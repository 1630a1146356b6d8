// The proof by counting: with SGD, rate 1 and gradients of -1, every push adds 1 to every element,
// so a block's values say how many pushes it has applied. Whatever happens to messages and servers,
// a push that reached a shard counts once there, however often it came; a shard that is restored
// has what its snapshot had, and what is pushed from then on.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

constexpr int kShards = 3;
constexpr int kWorkers = 4;
// The messages of a push at each shard.
constexpr size_t kMessages = 2;

// Zeros; on every shard there is more than one partition, or more than one block.
std::vector<VariableSpec> Variables() {
  return {{"kernel", Shape({60, 10}), {}},
          {"bias", Shape({30}), {}},
          {"other", Shape({90, 5}), {}},
          {"more", Shape({300}), {}}};
}

// By message of a shard: the pushes that have reached it.
using PushId = std::pair<uint64_t, uint64_t>;  // incarnation, sequence
using Truth = std::map<int, std::set<PushId>>;

struct ShardUnderTest {
  std::unique_ptr<TestServer> server;
  Truth truth;
};

struct StoredSnapshot {
  int64_t step = 0;
  std::vector<Truth> truths;  // of the shards
};

// A message that a worker repeats until it is answered.
struct Message {
  size_t shard = 0;
  size_t message = 0;
  TestRequest request;
};

class ExactlyOnceTest : public testing::TestWithParam<uint32_t> {
 protected:
  ExactlyOnceTest() {
    for (size_t s = 0; s < kShards; ++s) Start(s, std::nullopt);
    for (size_t w = 0; w < kWorkers; ++w) incarnations_.push_back(100 + w);
    sequences_.resize(kWorkers);
    unanswered_.resize(kWorkers);
  }

  std::set<uint64_t> living() const { return {incarnations_.begin(), incarnations_.end()}; }
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  size_t Below(size_t n) { return random_() % n; }
  ShardUnderTest& At(size_t shard) { return shards_[shard]; }

  v1::InitializeShardRequest InitializeOf(size_t shard, std::optional<int64_t> step) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, shard);
    request.mutable_learning_rate()->set_base(1);
    if (step.has_value()) request.set_restore_step(*step);
    *request.mutable_members() = TestMembers(epoch_, over_, living());
    return request;
  }
  // A new process in the place of the old one.
  void Start(size_t shard, std::optional<int64_t> step) {
    At(shard).server = std::make_unique<TestServer>(directory_);
    v1::InitializeShardResponse response;
    const absl::Status status =
        At(shard).server->handler.Initialize(InitializeOf(shard, step), &response);
    ASSERT_TRUE(status.ok()) << status;
  }
  void WriteSnapshot() {
    StoredSnapshot& snapshot = snapshots_.emplace_back();
    snapshot.step = static_cast<int64_t>(snapshots_.size());
    std::vector<ParameterControl*> servers;
    for (size_t s = 0; s < kShards; ++s) {
      servers.push_back(&At(s).server->handler);
      snapshot.truths.push_back(At(s).truth);
    }
    WriteBundle(servers, directory_, snapshot.step);
  }

  // The partitions of the shard, dealt out to the messages.
  std::vector<BlockRange> RangesOf(size_t shard, size_t message) const {
    std::vector<BlockRange> ranges;
    for (const BlockRange& range : PullOf(placement_, shard).header.ranges) {
      for (uint32_t b = 0; b < range.num_blocks; ++b) {
        if ((range.partition + b) % kMessages != message) continue;
        ranges.push_back({range.partition, b, 1});
      }
    }
    return ranges;
  }
  TestRequest RequestOf(size_t shard, size_t message, const PushId& push) const {
    TestRequest request =
        ConstantPushOf(placement_, shard, push.first, push.second, /*gradient=*/-1);
    request.header.ranges = RangesOf(shard, message);
    request.header.last_part = message + 1 == kMessages;
    int64_t elements = 0;
    for (const BlockRange& range : request.header.ranges) {
      elements += placement_.BlockElements(range.partition, range.first_block);
    }
    request.payload.resize(elements * sizeof(float));
    return request;
  }
  void BeginPush(size_t worker) {
    const PushId push = {incarnations_[worker], ++sequences_[worker]};
    for (size_t s = 0; s < kShards; ++s) {
      for (size_t m = 0; m < kMessages; ++m) {
        unanswered_[worker].push_back({s, m, RequestOf(s, m, push)});
      }
    }
  }
  // Sends one of the worker's messages; now and then its answer is lost, or the network keeps a
  // copy that arrives later.
  void SendOne(size_t worker, bool reliable) {
    std::vector<Message>& all = unanswered_[worker];
    const size_t chosen = Below(all.size());
    if (!reliable && Chance(20)) return;  // lost on the way
    const Message message = all[chosen];
    const auto method = Chance(50) ? BulkMethod::kPush : BulkMethod::kPushPull;
    const auto response = CallBulk(&At(message.shard).server->handler, method, message.request);
    ASSERT_TRUE(response.ok()) << response.status();
    At(message.shard)
        .truth[message.message]
        .insert({message.request.header.incarnation, message.request.header.sequence});
    if (!reliable && Chance(20)) copies_.push_back(message);
    if (!reliable && Chance(30)) return;  // the answer is lost
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  // Copies arrive late and in any order. They do not outlive the process that they were sent to,
  // for they come over its connections.
  void DeliverCopy() {
    if (copies_.empty()) return;
    const size_t chosen = Below(copies_.size());
    const Message copy = copies_[chosen];
    copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(chosen));
    const auto response =
        CallBulk(&At(copy.shard).server->handler, BulkMethod::kPush, copy.request);
    if (over_.contains(copy.request.header.incarnation)) {
      EXPECT_EQ(response.status().code(), absl::StatusCode::kAborted);
    } else {
      EXPECT_TRUE(response.ok() && response->header.duplicate_blocks > 0);
    }
  }
  void KillServer() {
    if (snapshots_.empty()) return;
    const size_t shard = Below(kShards);
    const StoredSnapshot& from = snapshots_[Below(snapshots_.size())];
    std::erase_if(copies_, [shard](const Message& copy) { return copy.shard == shard; });
    Start(shard, from.step);
    At(shard).truth = from.truths[shard];
  }
  void KillWorker(size_t worker) {
    over_.insert(incarnations_[worker]);
    unanswered_[worker].clear();
    incarnations_[worker] = next_incarnation_++;
    sequences_[worker] = 0;
    ++epoch_;
    for (size_t s = 0; s < kShards; ++s) Announce(&At(s).server->handler, over_, living());
  }

  void ExpectTruth() {
    for (size_t s = 0; s < kShards; ++s) {
      const auto response =
          CallBulk(&At(s).server->handler, BulkMethod::kPull, PullOf(placement_, s));
      ASSERT_TRUE(response.ok()) << response.status();
      const auto* value = reinterpret_cast<const float*>(response->payload.data());
      for (const BlockHeader& block : response->header.blocks) {
        const size_t message = (block.partition + block.block) % kMessages;
        const auto expected = static_cast<float>(At(s).truth[message].size());
        const int64_t elements = placement_.BlockElements(block.partition, block.block);
        for (int64_t e = 0; e < elements; ++e) {
          ASSERT_EQ(*value++, expected) << "shard " << s << ", partition " << block.partition
                                        << ", block " << block.block << ", element " << e;
        }
      }
    }
  }

  const Placement placement_ = Placement::Compute(Variables(), kShards, /*block_elements=*/40);
  const std::string directory_ = FreshDirectory();
  std::mt19937 random_{GetParam()};
  std::vector<ShardUnderTest> shards_{kShards};
  std::vector<StoredSnapshot> snapshots_;
  std::vector<uint64_t> incarnations_;
  std::vector<uint64_t> sequences_;
  std::vector<std::vector<Message>> unanswered_;  // of each worker
  std::vector<Message> copies_;
  std::set<uint64_t> over_;
  uint64_t epoch_ = 1;
  uint64_t next_incarnation_ = 1000;
};

INSTANTIATE_TEST_SUITE_P(Seeds, ExactlyOnceTest, testing::Range(1u, 9u));

TEST_P(ExactlyOnceTest, EveryPushThatArrivesCountsOnce) {
  for (int event = 0; event < 1500; ++event) {
    const size_t worker = Below(kWorkers);
    const size_t kind = Below(100);
    if (kind == 0) {
      KillServer();
    } else if (kind == 1) {
      KillWorker(worker);
    } else if (kind < 5) {
      WriteSnapshot();
    } else if (kind < 20) {
      DeliverCopy();
    } else if (unanswered_[worker].empty()) {
      BeginPush(worker);
    } else {
      SendOne(worker, /*reliable=*/false);
    }
    ASSERT_FALSE(HasFatalFailure()) << "event " << event;
  }
  // Nothing stays lost.
  for (size_t worker = 0; worker < kWorkers; ++worker) {
    while (!unanswered_[worker].empty()) SendOne(worker, /*reliable=*/true);
  }
  ExpectTruth();
}

}  // namespace
}  // namespace keelson
