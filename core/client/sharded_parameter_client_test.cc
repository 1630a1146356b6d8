#include "core/client/sharded_parameter_client.h"

#include <algorithm>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

absl::Status NotExpected() { return absl::UnimplementedError("the client does not call this"); }

// A shard of which every value of every block is `value`. Notes the pushes it gets. Tests change
// an answer through `after_pull` and `after_push`.
class FakeShard : public ParameterService {
 public:
  explicit FakeShard(const Placement& placement) : placement_(placement) {}

  float value = 1;
  uint64_t version = 1;
  uint64_t store_id = 100;
  int64_t shard_step = 0;
  int64_t staleness = 0;
  std::vector<v1::PullRequest> pulls;
  std::vector<v1::PushRequest> pushes;
  std::function<absl::Status(v1::PullResponse*)> after_pull = [](auto*) {
    return absl::OkStatus();
  };
  std::function<absl::Status(v1::PushResponse*)> after_push = [](auto*) {
    return absl::OkStatus();
  };

  absl::Status Pull(const v1::PullRequest& request, v1::PullResponse* response) override {
    pulls.push_back(request);
    response->set_store_id(store_id);
    response->set_shard_step(shard_step);
    int asked = 0;
    for (const v1::BlockRange& range : request.ranges()) {
      for (uint32_t i = 0; i < range.num_blocks(); ++i, ++asked) {
        if (version <= request.known_versions(asked)) continue;
        AddBlock(range.partition(), range.first_block() + i, response);
      }
    }
    return after_pull(response);
  }
  absl::Status Push(const v1::PushRequest& request, v1::PushResponse* response) override {
    pushes.push_back(request);
    response->set_staleness(staleness);
    return after_push(response);
  }

  absl::Status Initialize(const v1::InitializeShardRequest&,
                          v1::InitializeShardResponse*) override {
    return NotExpected();
  }
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest&, v1::WriteSnapshotResponse*) override {
    return NotExpected();
  }
  absl::Status GetStatus(const v1::GetShardStatusRequest&, v1::ShardStatus*) override {
    return NotExpected();
  }
  absl::Status FindChief(const v1::FindChiefRequest&, v1::FindChiefResponse*) override {
    return NotExpected();
  }
  absl::Status Finish(const v1::FinishShardRequest&, v1::FinishShardResponse*) override {
    return NotExpected();
  }

 private:
  void AddBlock(uint32_t partition, uint32_t block, v1::PullResponse* response) const {
    v1::BlockHeader* header = response->add_blocks();
    header->set_partition(partition);
    header->set_block(block);
    header->set_version(version);
    const int64_t elements = placement_.BlockElements(static_cast<int>(partition), block);
    const std::vector<float> values(static_cast<size_t>(elements), value);
    response->mutable_payload()->append(reinterpret_cast<const char*>(values.data()),
                                        values.size() * sizeof(float));
  }

  const Placement& placement_;
};

// One variable of 8 blocks: two messages.
std::vector<VariableSpec> OneVariable() { return {{"w", Shape({2000, 1000}), {}}}; }

class ShardedParameterClientTest : public testing::Test {
 protected:
  ShardedParameterClientTest() {
    ShardedParameterClient::Options options;
    options.self = {Role::kWorker, 3};
    options.incarnation = 42;
    options.retry.first_pause = absl::Microseconds(1);
    options.retry.longest_pause = absl::Microseconds(1);
    client_ = *ShardedParameterClient::Create(options, OneVariable(), placement_, {&shard_},
                                              &clock_, &stop_);
    gradients_.emplace_back(Shape({2000, 1000}));
  }

  // The value that all elements have; fails when they differ.
  float Value() const {
    const absl::Span<const float> values = client_->values()[0].span();
    EXPECT_EQ(std::count(values.begin(), values.end(), values[0]),
              static_cast<int64_t>(values.size()));
    return values[0];
  }
  void ExpectMalformed(const std::string& what) {
    const absl::Status status = client_->Pull();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  const Placement placement_ = Placement::Compute(OneVariable(), 1);
  FakeShard shard_{placement_};
  ManualClock clock_;
  StopSignal stop_;
  std::unique_ptr<ShardedParameterClient> client_;
  std::vector<Tensor> gradients_;
};

TEST_F(ShardedParameterClientTest, ValuesAreZerosBeforeTheFirstPull) {
  EXPECT_EQ(client_->values()[0].shape(), Shape({2000, 1000}));
  EXPECT_EQ(Value(), 0);
}

TEST_F(ShardedParameterClientTest, RequestsSayWhoAsksAndWhatIsKnown) {
  ASSERT_TRUE(client_->Pull().ok());
  ASSERT_TRUE(client_->Pull().ok());
  ASSERT_EQ(shard_.pulls.size(), 4u);
  for (const v1::PullRequest& request : shard_.pulls) {
    EXPECT_EQ(request.header().task().role(), v1::ROLE_WORKER);
    EXPECT_EQ(request.header().task().index(), 3u);
    EXPECT_EQ(request.header().incarnation(), 42u);
    EXPECT_EQ(request.placement_fingerprint(), placement_.Fingerprint());
  }
  EXPECT_THAT(shard_.pulls[0].known_versions(), testing::ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(shard_.pulls[3].known_versions(), testing::ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(Value(), 1);
}

TEST_F(ShardedParameterClientTest, UnchangedBlocksAreNotSentAgain) {
  ASSERT_TRUE(client_->Pull().ok());
  size_t payload = 1;
  shard_.after_pull = [&](v1::PullResponse* response) {
    payload = response->payload().size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(payload, 0u);
  EXPECT_EQ(Value(), 1);
  shard_.version = 2;
  shard_.value = 2;
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Value(), 2);
}

TEST_F(ShardedParameterClientTest, ShardThatStartedOverIsPulledWholeWithLowerVersions) {
  shard_.version = 9;
  ASSERT_TRUE(client_->Pull().ok());
  shard_.store_id = 200;
  shard_.version = 1;
  shard_.value = 5;
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Value(), 5);
}

// The shard starts over after `message` of the next pull.
void StartOverAfter(size_t message, FakeShard* shard) {
  const size_t calls = shard->pulls.size() + message;
  shard->after_pull = [shard, calls](v1::PullResponse*) {
    if (shard->pulls.size() == calls) {
      shard->store_id = 300;
      shard->version = 1;
      shard->value = 7;
      shard->shard_step = 2;
    }
    return absl::OkStatus();
  };
}

TEST_F(ShardedParameterClientTest, ShardThatStartsOverWithinTheFirstPull) {
  StartOverAfter(1, &shard_);
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Value(), 7);
}

TEST_F(ShardedParameterClientTest, ShardThatStartsOverWithinALaterPull) {
  shard_.version = 4;
  ASSERT_TRUE(client_->Pull().ok());
  shard_.version = 5;
  shard_.value = 2;
  StartOverAfter(1, &shard_);
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Value(), 7);
  ASSERT_TRUE(client_->Push(0, gradients_).ok());
  EXPECT_EQ(shard_.pushes[0].pulled_shard_step(), 2);
}

TEST_F(ShardedParameterClientTest, WhatAFailedCallLeftInTheAnswerIsNotUsed) {
  shard_.after_pull = [this](v1::PullResponse*) {
    return shard_.pulls.size() % 2 == 1 ? absl::UnavailableError("lost") : absl::OkStatus();
  };
  const absl::Status status = client_->Pull();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Value(), 1);
}

TEST_F(ShardedParameterClientTest, AnswerWithAForeignBlockIsMalformed) {
  shard_.after_pull = [](v1::PullResponse* response) {
    response->mutable_blocks(0)->set_block(99);
    return absl::OkStatus();
  };
  ExpectMalformed("not asked for");
}

TEST_F(ShardedParameterClientTest, AnswerInAnotherOrderIsMalformed) {
  shard_.after_pull = [](v1::PullResponse* response) {
    response->mutable_blocks()->SwapElements(0, 1);
    return absl::OkStatus();
  };
  ExpectMalformed("not asked for");
}

TEST_F(ShardedParameterClientTest, ShortPayloadIsMalformed) {
  shard_.after_pull = [](v1::PullResponse* response) {
    response->mutable_payload()->pop_back();
    return absl::OkStatus();
  };
  ExpectMalformed("shorter than its blocks");
}

TEST_F(ShardedParameterClientTest, LongPayloadIsMalformed) {
  shard_.after_pull = [](v1::PullResponse* response) {
    response->mutable_payload()->append("123");
    return absl::OkStatus();
  };
  ExpectMalformed("3 bytes beyond its blocks");
}

TEST_F(ShardedParameterClientTest, AnswerWithoutABlockThatIsNotKnownIsMalformed) {
  shard_.after_pull = [](v1::PullResponse* response) {
    response->mutable_blocks()->RemoveLast();
    response->mutable_payload()->resize(response->payload().size() - 4 * 262144);
    return absl::OkStatus();
  };
  ExpectMalformed("missing");
}

TEST_F(ShardedParameterClientTest, PartsOfAPushShareItsSequence) {
  shard_.shard_step = 6;
  ASSERT_TRUE(client_->Pull().ok());
  for (int64_t i = 0; i < gradients_[0].size(); ++i) {
    gradients_[0].data()[i] = static_cast<float>(i);
  }
  ASSERT_TRUE(client_->Push(17, gradients_).ok());
  ASSERT_TRUE(client_->Push(18, gradients_).ok());
  ASSERT_EQ(shard_.pushes.size(), 4u);
  std::string payload;
  for (size_t i = 0; i < 4; ++i) {
    const v1::PushRequest& push = shard_.pushes[i];
    EXPECT_EQ(push.header().incarnation(), 42u);
    EXPECT_EQ(push.placement_fingerprint(), placement_.Fingerprint());
    EXPECT_EQ(push.sequence(), i < 2 ? 1u : 2u);
    EXPECT_EQ(push.step(), i < 2 ? 17 : 18);
    EXPECT_EQ(push.pulled_shard_step(), 6);
    EXPECT_EQ(push.last_part(), i % 2 == 1);
    if (i < 2) payload += push.payload();
  }
  EXPECT_EQ(payload, std::string(reinterpret_cast<const char*>(gradients_[0].data()),
                                 static_cast<size_t>(gradients_[0].size()) * sizeof(float)));
}

TEST_F(ShardedParameterClientTest, RepeatedPartsAreTheSameAndAreCounted) {
  shard_.after_push = [this](v1::PushResponse*) {
    return shard_.pushes.size() < 3 ? absl::DeadlineExceededError("slow") : absl::OkStatus();
  };
  const auto result = client_->Push(0, gradients_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->retries, 2);
  ASSERT_EQ(shard_.pushes.size(), 4u);
  EXPECT_EQ(shard_.pushes[1].SerializeAsString(), shard_.pushes[0].SerializeAsString());
  shard_.after_push = [](v1::PushResponse*) { return absl::OkStatus(); };
  EXPECT_EQ(client_->Push(1, gradients_)->retries, 0);
}

TEST_F(ShardedParameterClientTest, FinalErrorsAreReturned) {
  shard_.after_pull = [](v1::PullResponse*) { return absl::AbortedError("other placement"); };
  shard_.after_push = [](v1::PushResponse*) { return absl::InvalidArgumentError("bad"); };
  EXPECT_EQ(client_->Pull(), absl::AbortedError("other placement"));
  EXPECT_EQ(client_->Push(0, gradients_).status(), absl::InvalidArgumentError("bad"));
}

TEST_F(ShardedParameterClientTest, GivesUpAfterItsPatienceAndSaysForWhomItWaited) {
  shard_.after_pull = [this](v1::PullResponse*) {
    clock_.Advance(absl::Minutes(11));
    return absl::UnavailableError("connection refused");
  };
  const absl::Status status = client_->Pull();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pulling from ps-0"));
}

TEST_F(ShardedParameterClientTest, StopMeansCancelled) {
  shard_.after_push = [this](v1::PushResponse*) {
    stop_.Raise();
    return absl::UnavailableError("connection refused");
  };
  EXPECT_EQ(client_->Push(0, gradients_).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(client_->Pull().code(), absl::StatusCode::kCancelled);
}

TEST(ShardedParameterClientManyTest, StalenessAndRetriesAreOverAllShards) {
  const std::vector<VariableSpec> variables = {{"a", Shape({2000}), {}}, {"b", Shape({2000}), {}}};
  const Placement placement = Placement::Compute(variables, 2);
  FakeShard first(placement);
  FakeShard second(placement);
  first.staleness = 3;
  second.staleness = 5;
  second.after_push = [&](v1::PushResponse*) {
    return second.pushes.size() == 1 ? absl::UnavailableError("away") : absl::OkStatus();
  };
  ManualClock clock;
  StopSignal stop;
  ShardedParameterClient::Options options;
  options.threads = 1;
  options.retry.first_pause = absl::Microseconds(1);
  auto client = ShardedParameterClient::Create(options, variables, placement, {&first, &second},
                                               &clock, &stop);
  ASSERT_TRUE(client.ok()) << client.status();
  std::vector<Tensor> gradients;
  for (const VariableSpec& variable : variables) gradients.emplace_back(variable.shape);
  const auto result = (*client)->Push(0, gradients);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->staleness, 5);
  EXPECT_EQ(result->retries, 1);
}

class CreateTest : public testing::Test {
 protected:
  absl::Status Create(std::vector<VariableSpec> variables, size_t shards) {
    return ShardedParameterClient::Create({}, variables, placement_,
                                          std::vector<ParameterService*>(shards, &shard_), &clock_,
                                          &stop_)
        .status();
  }

  const Placement placement_ =
      Placement::Compute({{"a", Shape({4}), {}}, {"b", Shape({5}), {}}}, /*num_shards=*/1);
  FakeShard shard_{placement_};
  ManualClock clock_;
  StopSignal stop_;
};

TEST_F(CreateTest, PlacementOfOtherVariablesIsRefused) {
  const absl::Status missing = Create({{"a", Shape({4}), {}}}, 1);
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("b[5]"));
  const absl::Status shape = Create({{"a", Shape({4}), {}}, {"b", Shape({6}), {}}}, 1);
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.message()), HasSubstr("b[5]"));
  const absl::Status more =
      Create({{"a", Shape({4}), {}}, {"b", Shape({5}), {}}, {"c", Shape({1}), {}}}, 1);
  EXPECT_EQ(more.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(more.message()), HasSubstr("expected 3 variables, found 2"));
}

TEST_F(CreateTest, AnotherNumberOfShardsIsRefused) {
  const absl::Status status = Create({{"b", Shape({5}), {}}, {"a", Shape({4}), {}}}, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected 2 shards, found 1"));
  EXPECT_TRUE(Create({{"b", Shape({5}), {}}, {"a", Shape({4}), {}}}, 1).ok());
}

}  // namespace
}  // namespace keelson
