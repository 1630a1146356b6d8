#include "ps_server/parameter_handler.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/checkpoint/bundle_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class ParameterHandlerTest : public testing::Test {
 protected:
  absl::Status Initialize(const v1::InitializeShardRequest& request) {
    initialized_.Clear();
    return server_.handler.Initialize(request, &initialized_);
  }
  absl::Status Pull(const v1::PullRequest& request) {
    pulled_.Clear();
    return server_.handler.Pull(request, &pulled_);
  }
  absl::Status Push(const v1::PushRequest& request) {
    pushed_.Clear();
    return server_.handler.Push(request, &pushed_);
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
  v1::PullResponse pulled_;
  v1::PushResponse pushed_;
};

TEST_F(ParameterHandlerTest, IsEmptyAtFirst) {
  const v1::ShardStatus status = GetStatus();
  EXPECT_EQ(status.state(), v1::ShardStatus::EMPTY);
  EXPECT_EQ(status.incarnation(), 9u);
  EXPECT_EQ(status.config_hash(), kTestConfigHash);
  EXPECT_EQ(status.store_id(), 0u);
}

TEST_F(ParameterHandlerTest, ReportsItsShard) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0, "adam {}")).ok());
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  const size_t blocks = Values().size() == 5 ? static_cast<size_t>(pulled_.blocks_size()) : 0;
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
  request.mutable_header()->set_incarnation(kTestChief + 1);
  ASSERT_TRUE(Initialize(request).ok());
  EXPECT_NE(initialized_.status().store_id(), store_id);
  EXPECT_EQ(initialized_.status().shard_step(), 0);
  EXPECT_EQ(Values(), initial);
}

TEST_F(ParameterHandlerTest, ReplacedChiefIsRefused) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  request.mutable_header()->set_incarnation(kTestChief + 1);
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
  missing.set_restore_prefix(NewTestDirectory() + "/model.ckpt-1");
  EXPECT_EQ(Initialize(missing).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GetStatus().state(), v1::ShardStatus::EMPTY);
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  EXPECT_EQ(GetStatus().state(), v1::ShardStatus::READY);
}

TEST(ParameterHandlerInitialValuesTest, DoNotDependOnTheNumberOfShards) {
  const Arrays one = PullAll(TestPlacement(1), StartServers(TestPlacement(1), "sgd {}", ""));
  ASSERT_EQ(one.size(), 5u);
  EXPECT_EQ(one.at("scale"), std::vector<float>{0.25f});
  EXPECT_NE(one.at("dense/kernel")[0], one.at("dense/kernel")[1]);
  for (const int shards : {2, 5}) {
    EXPECT_EQ(PullAll(TestPlacement(shards), StartServers(TestPlacement(shards), "sgd {}", "")),
              one);
  }
}

// Pull

TEST_F(ParameterHandlerTest, PullHasOnlyWhatIsNewer) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  v1::PullRequest request = PullOf(placement_, 0);
  ASSERT_TRUE(Pull(request).ok());
  const int blocks = pulled_.blocks_size();
  for (const v1::BlockHeader& block : pulled_.blocks()) {
    request.add_known_versions(block.version());
  }
  ASSERT_TRUE(Pull(request).ok());
  EXPECT_EQ(pulled_.blocks_size(), 0);
  EXPECT_EQ(pulled_.payload(), "");

  request.set_known_versions(blocks - 1, request.known_versions(blocks - 1) - 1);
  ASSERT_TRUE(Pull(request).ok());
  ASSERT_EQ(pulled_.blocks_size(), 1);
  EXPECT_EQ(placement_.VariableOf(static_cast<int>(pulled_.blocks(0).partition())).name, "scale");
  EXPECT_EQ(pulled_.payload(), BytesOf({0.25f}));
}

TEST_F(ParameterHandlerTest, PullAfterAPushHasHigherVersions) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  ASSERT_TRUE(Pull(PullOf(placement_, 0)).ok());
  const v1::PullResponse before = pulled_;
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  ASSERT_TRUE(Pull(PullOf(placement_, 0)).ok());
  EXPECT_EQ(pulled_.store_id(), before.store_id());
  EXPECT_EQ(pulled_.shard_step(), before.shard_step() + 1);
  for (int b = 0; b < before.blocks_size(); ++b) {
    EXPECT_GT(pulled_.blocks(b).version(), before.blocks(b).version());
  }
}

TEST_F(ParameterHandlerTest, PullWithTheWrongNumberOfVersionsIsRefused) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  v1::PullRequest request = PullOf(placement_, 0);
  request.add_known_versions(0);
  EXPECT_EQ(Pull(request).code(), absl::StatusCode::kInvalidArgument);
}

// Push

TEST_F(ParameterHandlerTest, PushAppliesTheOptimizerWithTheRateOfTheStep) {
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  request.mutable_learning_rate()->mutable_step()->add_boundaries(10);
  request.mutable_learning_rate()->mutable_step()->set_factor(0.5f);
  ASSERT_TRUE(Initialize(request).ok());
  v1::PushRequest push = ConstantPushOf(placement_, 0, 1, 1, 2.0f);
  push.set_step(9);
  ASSERT_TRUE(Push(push).ok());
  EXPECT_EQ(Values().at("scale"), std::vector<float>{0.25f - kTestLearningRate * 2});
  push.set_sequence(2);
  push.set_step(10);
  ASSERT_TRUE(Push(push).ok());
  EXPECT_EQ(Values().at("scale"), std::vector<float>{0.25f - 1.5f * kTestLearningRate * 2});
}

TEST_F(ParameterHandlerTest, PushThatDoesNotFitIsRefusedAndNothingIsApplied) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  const Arrays before = Values();
  v1::PushRequest shorter = PushOf(placement_, 0, 1, 1);
  shorter.mutable_payload()->resize(shorter.payload().size() - sizeof(float));
  v1::PushRequest longer = PushOf(placement_, 0, 1, 1);
  longer.mutable_payload()->append(1, 'x');
  v1::PushRequest unknown_partition = PushOf(placement_, 0, 1, 1);
  unknown_partition.add_ranges()->set_partition(99);
  unknown_partition.mutable_ranges()->rbegin()->set_num_blocks(1);
  v1::PushRequest unknown_block = PushOf(placement_, 0, 1, 1);
  const uint32_t blocks = unknown_block.ranges(0).num_blocks();
  unknown_block.mutable_ranges(0)->set_num_blocks(blocks + 1);
  for (const auto& push : {shorter, longer, unknown_partition, unknown_block}) {
    EXPECT_EQ(Push(push).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(Values(), before);
  EXPECT_EQ(GetStatus().shard_step(), 0);
  EXPECT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks(), 0u) << "no refused push was noted";
}

TEST_F(ParameterHandlerTest, RefusedPayloadNamesVariableAndSizes) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  v1::PushRequest push = PushOf(placement_, 0, 1, 1);
  const size_t bytes = push.payload().size();
  push.set_payload("1234");
  const std::string message(Push(push).message());
  EXPECT_THAT(message, HasSubstr("conv/kernel"));
  EXPECT_THAT(message, HasSubstr(absl::StrCat("expected ", bytes, " bytes")));
  EXPECT_THAT(message, HasSubstr("found 4"));
}

TEST_F(ParameterHandlerTest, RepeatedPushIsAcknowledgedAndNotApplied) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  const Arrays once = Values();
  const int blocks = pulled_.blocks_size();
  ASSERT_TRUE(Push(PushOf(placement_, 0, 1, 1)).ok());
  EXPECT_EQ(static_cast<int>(pushed_.duplicate_blocks()), blocks);
  EXPECT_EQ(pushed_.shard_step(), 1);
  EXPECT_EQ(pushed_.staleness(), 0) << "the push itself is no push of another";
  EXPECT_EQ(Values(), once);
  ASSERT_TRUE(Push(PushOf(placement_, 0, /*incarnation=*/2, 1)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks(), 0u);
  EXPECT_EQ(pushed_.shard_step(), 2);
}

TEST_F(ParameterHandlerTest, StalenessCountsThePushesSinceThePull) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  for (int64_t others = 0; others < 4; ++others) {
    v1::PushRequest push = PushOf(placement_, 0, 1, static_cast<uint64_t>(others) + 1);
    push.set_pulled_shard_step(0);
    ASSERT_TRUE(Push(push).ok());
    EXPECT_EQ(pushed_.staleness(), others);
    EXPECT_EQ(pushed_.shard_step(), others + 1);
  }
  v1::PushRequest fresh = PushOf(placement_, 0, 2, 1);
  fresh.set_pulled_shard_step(4);
  ASSERT_TRUE(Push(fresh).ok());
  EXPECT_EQ(pushed_.staleness(), 0);
  // Pulled from a store that had gone further before the shard started over.
  fresh.set_sequence(2);
  fresh.set_pulled_shard_step(100);
  ASSERT_TRUE(Push(fresh).ok());
  EXPECT_EQ(pushed_.staleness(), 0);
}

// The blocks of one partition.
v1::PushRequest PartOf(const Placement& placement, int p, uint64_t sequence, bool last) {
  v1::PushRequest push = PushOf(placement, 0, 1, sequence);
  push.clear_ranges();
  push.add_ranges()->set_partition(static_cast<uint32_t>(p));
  push.mutable_ranges(0)->set_num_blocks(static_cast<uint32_t>(placement.NumBlocks(p)));
  push.set_payload(std::string(static_cast<size_t>(placement.PartitionElements(p)) * 4, '\0'));
  push.set_last_part(last);
  return push;
}

TEST_F(ParameterHandlerTest, PushOfSeveralPartsCountsWithItsLast) {
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  ASSERT_TRUE(Push(PartOf(placement_, 0, 1, false)).ok());
  EXPECT_EQ(pushed_.shard_step(), 0);
  EXPECT_EQ(pushed_.staleness(), 0);
  ASSERT_TRUE(Push(PartOf(placement_, 0, 1, false)).ok());
  EXPECT_EQ(pushed_.staleness(), 0);
  ASSERT_TRUE(Push(PartOf(placement_, 1, 1, true)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks(), 0u);
  EXPECT_EQ(pushed_.shard_step(), 1);
  EXPECT_EQ(pushed_.staleness(), 0);
  ASSERT_TRUE(Push(PartOf(placement_, 1, 1, true)).ok());
  EXPECT_EQ(pushed_.duplicate_blocks(), 1u);
  EXPECT_EQ(pushed_.shard_step(), 1);
}

TEST_F(ParameterHandlerTest, OnePushSentSideBySideCountsOnce) {
  constexpr uint64_t kPushes = 40;
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0)).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (uint64_t s = 1; s <= kPushes; ++s) {
        v1::PushResponse response;
        EXPECT_TRUE(server_.handler.Push(ConstantPushOf(placement_, 0, 1, s, 1), &response).ok());
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
  const std::string prefix = NewTestDirectory() + "/model.ckpt-";
  ASSERT_TRUE(Initialize(InitializeRequest(placement_, 0, "momentum {}")).ok());
  std::atomic<int> pushing{kPushers};
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= kPushers; ++t) {
    threads.emplace_back([this, t, &pushing] {
      for (uint64_t s = 1; s <= kPushes; ++s) {
        v1::PushResponse response;
        EXPECT_TRUE(server_.handler.Push(ConstantPushOf(placement_, 0, t, s, 1), &response).ok());
      }
      --pushing;
    });
  }
  // "dense/bias" starts with equal values and gets equal gradients: it stays equal.
  threads.emplace_back([this, &pushing] {
    while (pushing > 0) {
      v1::PullResponse response;
      EXPECT_TRUE(server_.handler.Pull(PullOf(placement_, 0), &response).ok());
      Arrays arrays;
      Receive(placement_, response, &arrays);
      const std::vector<float>& bias = arrays["dense/bias"];
      EXPECT_EQ(std::count(bias.begin(), bias.end(), bias[0]), 17);
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; pushing > 0; ++i) {
      v1::WriteSnapshotRequest request;
      request.set_data_path(DataPath(absl::StrCat(prefix, i), 0, 1));
      v1::WriteSnapshotResponse response;
      EXPECT_TRUE(server_.handler.WriteSnapshot(request, &response).ok());
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
      v1::PushResponse response;
      const absl::Status status =
          server_.handler.Push(ConstantPushOf(placement_, 0, 1, s, 1), &response);
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kUnavailable) << status;
    }
  });
  for (uint64_t chief = 1; chief <= 20; ++chief) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
    request.mutable_header()->set_incarnation(kTestChief + chief);
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
  v1::GetShardStatusRequest request;
  request.set_chief_address("chief-0:2222");
  v1::ShardStatus status;
  ASSERT_TRUE(server_.handler.GetStatus(request, &status).ok());
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

}  // namespace
}  // namespace keelson
