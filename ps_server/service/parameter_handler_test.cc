#include "ps_server/service/parameter_handler.h"

#include <algorithm>
#include <thread>

#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class ParameterHandlerTest : public testing::Test {
 protected:
  absl::Status Initialize(const v1::InitializeShardRequest& request) {
    initialized_.Clear();
    return server_.handler.Initialize(request, &initialized_);
  }
  absl::StatusOr<TestResponse> Call(BulkMethod method, const TestRequest& request) {
    return CallBulk(&server_.handler, method, request);
  }
  absl::Status Pull(const TestRequest& request) {
    const auto response = Call(BulkMethod::kPull, request);
    pulled_ = response.ok() ? *response : TestResponse();
    return response.status();
  }
  absl::Status Push(const TestRequest& request) {
    const auto response = Call(BulkMethod::kPush, request);
    pushed_ = response.ok() ? response->header : BulkResponse();
    return response.status();
  }
  v1::ShardStatus GetStatus() {
    v1::ShardStatus status;
    EXPECT_TRUE(server_.handler.GetStatus({}, &status).ok());
    return status;
  }
  Arrays Values() {
    EXPECT_TRUE(Pull(PullOf(placement_, 0)).ok());
    Arrays arrays;
    Receive(placement_, pulled_, &arrays);
    return arrays;
  }

  const Placement placement_ = TestPlacement(1);
  TestServer server_;
  v1::InitializeShardResponse initialized_;
  TestResponse pulled_;
  BulkResponse pushed_;
};

TEST_F(ParameterHandlerTest, IsEmptyAtFirst) {
  const v1::ShardStatus status = GetStatus();
  EXPECT_EQ(status.state(), v1::ShardStatus::EMPTY);
  EXPECT_EQ(status.incarnation(), 0u) << "it is told to the chief only";
  EXPECT_EQ(status.config_hash(), kTestConfigHash);
  EXPECT_EQ(status.store_id(), 0u);
}

TEST_F(ParameterHandlerTest, ReportsItsShard) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0, "adam {}")).ok());
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  const size_t blocks = Values().size() == 5 ? pulled_.header.blocks.size() : 0;
  const v1::ShardStatus status = GetStatus();
  EXPECT_EQ(status.state(), v1::ShardStatus::READY);
  EXPECT_EQ(status.store_id(), initialized_.status().store_id());
  EXPECT_EQ(status.shard_step(), 1);
  EXPECT_EQ(status.value_bytes(), placement_.ShardBytes(0));
  EXPECT_EQ(status.slot_bytes(), 2 * placement_.ShardBytes(0));
  EXPECT_EQ(status.pushed_bytes(), 2 * placement_.ShardBytes(0));
  EXPECT_EQ(status.pulled_bytes(), placement_.ShardBytes(0));
  EXPECT_EQ(static_cast<size_t>(status.duplicate_blocks()), blocks);
}

// Initialize

TEST_F(ParameterHandlerTest, OtherConfigurationIsRefusedWithBothHashes) {
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  request.set_config_hash(0xdef);
  const absl::Status status = Initialize(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000abc"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000def"));
  EXPECT_EQ(GetStatus().state(), v1::ShardStatus::EMPTY);
}

TEST(AnyConfigTest, ServerWithoutAConfigurationTakesThatOfItsChief) {
  ManualClock clock;
  StopSignal end;
  ParameterHandler handler({.incarnation = 9}, &clock, &end);
  const Placement placement = TestPlacement(1);
  const auto initialize = [&](uint64_t chief, uint64_t hash) {
    v1::InitializeShardRequest request = InitializeRequest(placement, 0);
    *request.mutable_header() = HeaderOf(chief);
    request.set_config_hash(hash);
    v1::InitializeShardResponse response;
    return handler.Initialize(request, &response);
  };
  const auto status = [&] {
    v1::ShardStatus status;
    EXPECT_TRUE(handler.GetStatus({}, &status).ok());
    return status;
  };
  EXPECT_TRUE(status().takes_any_config());
  EXPECT_EQ(status().config_hash(), 0u);
  ASSERT_TRUE(initialize(kTestChief, 0x123).ok());
  EXPECT_EQ(status().config_hash(), 0x123u);
  ASSERT_TRUE(initialize(kTestChief + 1, 0x456).ok());
  EXPECT_EQ(status().config_hash(), 0x456u);
}

TEST_F(ParameterHandlerTest, InitializeRepeatedByTheSameChiefChangesNothing) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  const uint64_t store_id = initialized_.status().store_id();
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  const Arrays trained = Values();
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  EXPECT_EQ(initialized_.status().store_id(), store_id);
  EXPECT_EQ(initialized_.status().shard_step(), 1);
  EXPECT_EQ(Values(), trained);
}

TEST_F(ParameterHandlerTest, NewChiefStartsTheShardOver) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  const uint64_t store_id = initialized_.status().store_id();
  const Arrays initial = Values();
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  *request.mutable_header() = HeaderOf(kTestChief + 1);
  ASSERT_TRUE(Initialize(request).ok());
  EXPECT_NE(initialized_.status().store_id(), store_id);
  EXPECT_EQ(initialized_.status().shard_step(), 0);
  EXPECT_EQ(Values(), initial);
}

TEST_F(ParameterHandlerTest, ReplacedChiefIsRefused) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  *request.mutable_header() = HeaderOf(kTestChief + 1);
  ASSERT_TRUE(Initialize(request).ok());
  const uint64_t store_id = initialized_.status().store_id();
  EXPECT_EQ(Initialize(InitializeRequest(placement_, 0)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(GetStatus().store_id(), store_id);
}

TEST_F(ParameterHandlerTest, InitializeThatDoesNotMakeSenseIsRefused) {
  v1::InitializeShardRequest shard_beyond = InitializeRequest(placement_, 1);
  v1::InitializeShardRequest other_fingerprint = InitializeRequest(placement_, 0);
  other_fingerprint.set_placement_fingerprint(1);
  v1::InitializeShardRequest no_shards = InitializeRequest(placement_, 0);
  no_shards.mutable_placement()->set_num_shards(0);
  v1::InitializeShardRequest no_optimizer = InitializeRequest(placement_, 0);
  no_optimizer.clear_optimizer();
  v1::InitializeShardRequest no_rate = InitializeRequest(placement_, 0);
  no_rate.mutable_learning_rate()->set_base(-1);
  for (const auto& request : {shard_beyond, other_fingerprint, no_shards, no_optimizer, no_rate}) {
    EXPECT_EQ(Initialize(request).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(GetStatus().state(), v1::ShardStatus::EMPTY);
  }
  EXPECT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
}

TEST_F(ParameterHandlerTest, FailedInitializeIsNotTakenForAnEarlierOneThatSucceeded) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  v1::InitializeShardRequest missing = InitializeRequest(placement_, 0);
  missing.set_restore_step(1);
  EXPECT_EQ(Initialize(missing).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GetStatus().state(), v1::ShardStatus::EMPTY);
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  EXPECT_EQ(GetStatus().state(), v1::ShardStatus::READY);
}

TEST(ParameterHandlerInitialValuesTest, DoNotDependOnTheNumberOfShards) {
  const Arrays one = PullAll(TestPlacement(1), StartServers(TestPlacement(1), "sgd {}"));
  ASSERT_EQ(one.size(), 5u);
  EXPECT_EQ(one.at("scale"), std::vector<float>{0.25f});
  EXPECT_NE(one.at("dense/kernel")[0], one.at("dense/kernel")[1]);
  for (const int shards : {2, 5}) {
    EXPECT_EQ(PullAll(TestPlacement(shards), StartServers(TestPlacement(shards), "sgd {}")), one);
  }
}

// Pull

TEST_F(ParameterHandlerTest, PullHasOnlyWhatIsNewer) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  TestRequest request = PullOf(placement_, 0);
  ASSERT_TRUE(Pull(request).ok());
  for (const BlockHeader& block : pulled_.header.blocks) {
    request.header.known_versions.push_back(block.version);
  }
  ASSERT_TRUE(Pull(request).ok());
  EXPECT_TRUE(pulled_.header.blocks.empty());
  EXPECT_EQ(pulled_.payload, "");

  --request.header.known_versions.back();
  ASSERT_TRUE(Pull(request).ok());
  ASSERT_EQ(pulled_.header.blocks.size(), 1u);
  const size_t partition = pulled_.header.blocks[0].partition;
  EXPECT_EQ(placement_.VariableOf(partition).name, "scale");
  EXPECT_EQ(pulled_.payload, BytesOf({0.25f}));
}

TEST_F(ParameterHandlerTest, PullHasBlocksWhoseKnownVersionIsAhead) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  TestRequest request = PullOf(placement_, 0);
  ASSERT_TRUE(Pull(request).ok());
  const TestResponse all = pulled_;
  request.header.known_versions.assign(all.header.blocks.size(), 1000);
  ASSERT_TRUE(Pull(request).ok());
  EXPECT_EQ(pulled_.payload, all.payload);
}

TEST_F(ParameterHandlerTest, PullAfterAPushHasHigherVersions) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  ASSERT_TRUE(Pull(PullOf(placement_, 0)).ok());
  const BulkResponse before = pulled_.header;
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  ASSERT_TRUE(Pull(PullOf(placement_, 0)).ok());
  EXPECT_EQ(pulled_.header.store_id, before.store_id);
  EXPECT_EQ(pulled_.header.shard_step, before.shard_step + 1);
  for (size_t b = 0; b < before.blocks.size(); ++b) {
    EXPECT_GT(pulled_.header.blocks[b].version, before.blocks[b].version);
  }
}

// Push

TEST_F(ParameterHandlerTest, PushAppliesTheOptimizerWithTheRateOfTheStep) {
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  request.mutable_learning_rate()->mutable_step()->add_boundaries(10);
  request.mutable_learning_rate()->mutable_step()->set_factor(0.5f);
  ASSERT_TRUE(Initialize(request).ok());
  TestRequest push = ConstantPushOf(placement_, 0, 1, 1, 2.0f);
  push.header.step = 9;
  ASSERT_TRUE(Push(push).ok());
  EXPECT_EQ(Values().at("scale"), std::vector<float>{0.25f - kTestLearningRate * 2});
  push.header.sequence = 2;
  push.header.step = 10;
  ASSERT_TRUE(Push(push).ok());
  EXPECT_EQ(Values().at("scale"), std::vector<float>{0.25f - 1.5f * kTestLearningRate * 2});
}

TEST_F(ParameterHandlerTest, RepeatedPushIsAcknowledgedAndNotApplied) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  const Arrays once = Values();
  const size_t blocks = pulled_.header.blocks.size();
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks, blocks);
  EXPECT_EQ(pushed_.shard_step, 1);
  EXPECT_EQ(pushed_.staleness, 0) << "the push itself is no push of another";
  EXPECT_EQ(Values(), once);
  ASSERT_TRUE(Push(PushOf(placement_, 0, /*incarnation=*/2, 1)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks, 0u);
  EXPECT_EQ(pushed_.shard_step, 2);
}

TEST_F(ParameterHandlerTest, StalenessCountsThePushesSinceThePull) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  for (int64_t others = 0; others < 4; ++others) {
    TestRequest push = PushOf(placement_, 0, 1, static_cast<uint64_t>(others) + 1);
    push.header.pulled_shard_step = 0;
    ASSERT_TRUE(Push(push).ok());
    EXPECT_EQ(pushed_.staleness, others);
    EXPECT_EQ(pushed_.shard_step, others + 1);
  }
  TestRequest fresh = PushOf(placement_, 0, 2, 1);
  fresh.header.pulled_shard_step = 4;
  ASSERT_TRUE(Push(fresh).ok());
  EXPECT_EQ(pushed_.staleness, 0);
  // Pulled from a store that had gone further before the shard started over.
  fresh.header.sequence = 2;
  fresh.header.pulled_shard_step = 100;
  ASSERT_TRUE(Push(fresh).ok());
  EXPECT_EQ(pushed_.staleness, 0);
}

// The blocks of one partition.
TestRequest PartOf(const Placement& placement, size_t p, uint64_t sequence, bool last) {
  TestRequest push = PushOf(placement, 0, 1, sequence);
  push.header.ranges = {
      {static_cast<uint32_t>(p), 0, static_cast<uint32_t>(placement.NumBlocks(p))}};
  push.payload = std::string(placement.PartitionElements(p) * 4, '\0');
  push.header.last_part = last;
  return push;
}

TEST_F(ParameterHandlerTest, PushOfSeveralPartsCountsWithItsLast) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  ASSERT_TRUE(Push(PartOf(placement_, 0, 1, false)).ok());
  EXPECT_EQ(pushed_.shard_step, 0);
  EXPECT_EQ(pushed_.staleness, 0);
  ASSERT_TRUE(Push(PartOf(placement_, 0, 1, false)).ok());
  EXPECT_EQ(pushed_.staleness, 0);
  ASSERT_TRUE(Push(PartOf(placement_, 1, 1, true)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks, 0u);
  EXPECT_EQ(pushed_.shard_step, 1);
  EXPECT_EQ(pushed_.staleness, 0);
  ASSERT_TRUE(Push(PartOf(placement_, 1, 1, true)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks, 1u);
  EXPECT_EQ(pushed_.shard_step, 1);
}

TEST_F(ParameterHandlerTest, OnePushSentSideBySideCountsOnce) {
  constexpr uint64_t kPushes = 40;
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (uint64_t s = 1; s <= kPushes; ++s) {
        EXPECT_TRUE(Call(BulkMethod::kPush, ConstantPushOf(placement_, 0, 1, s, 1)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(GetStatus().shard_step(), static_cast<int64_t>(kPushes));
  EXPECT_EQ(Values().at("scale"), std::vector<float>{0.25f - kTestLearningRate * kPushes});
}

// Everything at once

TEST_F(ParameterHandlerTest, ManyThreadsPushPullAndCut) {
  constexpr int kPushers = 2;
  constexpr uint64_t kPushes = 40;
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0, "momentum {}")).ok());
  std::atomic<int> pushing{kPushers};
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= kPushers; ++t) {
    threads.emplace_back([this, t, &pushing] {
      for (uint64_t s = 1; s <= kPushes; ++s) {
        const BulkMethod method = s % 2 == 0 ? BulkMethod::kPush : BulkMethod::kPushPull;
        EXPECT_TRUE(Call(method, ConstantPushOf(placement_, 0, t, s, 1)).ok());
      }
      --pushing;
    });
  }
  // "dense/bias" starts with equal values and gets equal gradients: it stays equal.
  threads.emplace_back([this, &pushing] {
    while (pushing > 0) {
      const auto response = Call(BulkMethod::kPull, PullOf(placement_, 0));
      ASSERT_TRUE(response.ok()) << response.status();
      Arrays arrays;
      Receive(placement_, *response, &arrays);
      const std::vector<float>& bias = arrays["dense/bias"];
      EXPECT_EQ(std::count(bias.begin(), bias.end(), bias[0]), 17);
    }
  });
  threads.emplace_back([&] {
    for (int64_t step = 0; pushing > 0; ++step) {
      v1::WriteSnapshotResponse response;
      EXPECT_TRUE(server_.handler.WriteSnapshot(SnapshotRequest(step), &response).ok());
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(GetStatus().shard_step(), static_cast<int64_t>(kPushers * kPushes));
}

TEST_F(ParameterHandlerTest, CallsInFlightOutliveTheStoreThatIsReplaced) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  std::atomic<bool> replacing{true};
  std::thread pusher([&] {
    for (uint64_t s = 1; replacing; ++s) {
      const absl::Status status =
          Call(BulkMethod::kPush, ConstantPushOf(placement_, 0, 1, s, 1)).status();
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kUnavailable) << status;
    }
  });
  for (uint64_t chief = 1; chief <= 20; ++chief) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    *request.mutable_header() = HeaderOf(kTestChief + chief);
    v1::InitializeShardResponse response;
    EXPECT_TRUE(server_.handler.Initialize(request, &response).ok());
  }
  replacing = false;
  pusher.join();
}

// The rest

TEST_F(ParameterHandlerTest, LearnsWhereTheChiefIs) {
  v1::FindChiefResponse found;
  ASSERT_TRUE(server_.handler.FindChief({}, &found).ok());
  EXPECT_EQ(found.address(), "");
  v1::ChiefHeartbeatRequest request;
  request.set_chief_address("chief-0:2222");
  v1::ShardStatus status;
  ASSERT_TRUE(server_.handler.ChiefHeartbeat(request, &status).ok());
  GetStatus();
  ASSERT_TRUE(server_.handler.FindChief({}, &found).ok());
  EXPECT_EQ(found.address(), "chief-0:2222");
}

TEST_F(ParameterHandlerTest, FinishRaisesTheEnd) {
  EXPECT_FALSE(server_.handler.finished());
  EXPECT_FALSE(server_.end.raised());
  v1::FinishShardResponse response;
  ASSERT_TRUE(server_.handler.Finish({}, &response).ok());
  EXPECT_TRUE(server_.handler.finished());
  EXPECT_TRUE(server_.end.raised());
}

// What a caller may make a server allocate

TEST(ParameterHandlerBoundsTest, AShardThatIsTooLargeIsRefusedBeforeItIsAllocated) {
  StopSignal end;
  ManualClock clock;
  ParameterHandler handler(
      {.incarnation = 9, .config_hash = kTestConfigHash, .max_shard_bytes = 1'000'000}, &clock,
      &end);
  v1::InitializeShardResponse response;
  const Placement huge = Placement::Compute({{"w", Shape({int64_t{1} << 50}), {}}}, 1);
  const absl::Status status = handler.Initialize(InitializeRequest(huge, 0, "adam {}"), &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Initialize: shard 0 of 1: expected at most 1000000 bytes of values and "
                        "slots (--max_shard_bytes), found 135"));
  // Of many small blocks each costs more than its elements.
  const Placement scattered = Placement::Compute({{"w", Shape({10'000}), {}}}, 1, 1);
  EXPECT_EQ(handler.Initialize(InitializeRequest(scattered, 0), &response).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(handler.Initialize(InitializeRequest(TestPlacement(1), 0), &response).ok());
}

TEST_F(ParameterHandlerTest, ARequestHasNoMoreRangesThanTheShardHasBlocks) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  TestRequest request = PullOf(placement_, 0);
  request.header.ranges.resize(request.header.ranges.size() + 2000);
  const absl::Status status = Pull(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pull: malformed request: field ranges"));
}

}  // namespace
}  // namespace keelson
