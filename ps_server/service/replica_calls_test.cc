#include "ps_server/service/replica_calls.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/placement.h"
#include "core/tensor/shape.h"
#include "core/wire/byte_rope.h"
#include "core/wire/round_part.h"
#include "gmock/gmock.h"
#include "ps_server/service/hosted_shards.h"
#include "ps_server/service/loopback_testing.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/shard_testing.h"
#include "testing/services/faulty_parameter_control.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// The host of a shard, and another process that is to be its replica.
class ReplicaCallsTest : public testing::TestWithParam<const char*> {
 protected:
  ReplicaCallsTest() {
    v1::InitializeShardResponse response;
    EXPECT_TRUE(host_.handler.Initialize(start_, &response).ok());
  }

  // `store_id`: of the host's shard, as the chief knows it; 0: any.
  absl::Status Replicate(uint64_t store_id = 0) {
    v1::ReplicateShardRequest request;
    *request.mutable_start() = start_;
    request.set_from("host:1");
    request.set_store_id(store_id);
    v1::InitializeShardResponse response;
    return replica_.ReplicateShard(request, &response);
  }
  absl::Status ReplicateRound(const RoundId& round, uint32_t contributions, uint64_t store_id = 0,
                              uint64_t replica_store_id = 0) {
    v1::ReplicateRoundRequest request;
    *request.mutable_header() = start_.header();
    request.set_from("host:1");
    request.set_round(round.round);
    request.set_attempt(round.attempt);
    request.set_contributions(contributions);
    request.set_store_id(store_id);
    request.set_replica_store_id(replica_store_id);
    v1::ReplicateRoundResponse response;
    return replica_.ReplicateRound(request, &response);
  }
  // The gradients of two workers for the round, at the host. Returns the last push.
  TestRequest PushRound(const RoundId& round, ParameterHandler* at) {
    TestRequest push;
    for (const uint64_t worker : {1, 2}) {
      ++sequence_;
      push = StagedPushOf(placement_, 0, worker, sequence_, round,
                          /*weight=*/static_cast<float>(worker) + 0.3f,
                          /*gradient=*/0.1f * static_cast<float>(sequence_));
      const absl::Status status = CallBulk(at, BulkMethod::kPush, push).status();
      EXPECT_TRUE(status.ok()) << status;
    }
    return push;
  }
  // Values, slots, versions and progress. The sums of a round do not say whose pushes they have.
  std::string StateOf(ParameterHandler* server) {
    v1::ReadShardRequest request;
    *request.mutable_header() = start_.header();
    std::string state;
    const absl::Status status = server->ReadShard(request, [&](v1::InitializeChunk chunk) {
      for (v1::InitializeChunk::Block& block : *chunk.mutable_blocks()) block.clear_applied();
      state += chunk.SerializeAsString();
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return state;
  }

  // The message with the first of the push's ranges of blocks.
  TestRequest FirstRangeOf(TestRequest push) const {
    const BlockRange range = push.header.ranges.front();
    int64_t elements = 0;
    for (uint32_t b = 0; b < range.num_blocks; ++b) {
      elements += placement_.BlockElements(range.partition, range.first_block + b);
    }
    push.header.ranges = {range};
    push.header.last_part = false;
    push.payload.resize(static_cast<size_t>(elements) * sizeof(float));
    return push;
  }

  const Placement placement_ = TestPlacement(1);
  const v1::InitializeShardRequest start_ = InitializeRequest(placement_, 0, GetParam());
  TestServer host_;
  FaultyParameterControl connection_{&host_.handler};
  ManualClock clock_;
  StopSignal end_;
  ParameterHandler replica_{{.incarnation = 9,
                             .config_hash = kTestConfigHash,
                             .connect_host =
                                 [this](const std::string& address) {
                                   EXPECT_EQ(address, "host:1");
                                   return std::make_unique<FaultyParameterControl>(&connection_);
                                 }},
                            &clock_,
                            &end_};
  uint64_t sequence_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Optimizers, ReplicaCallsTest,
                         testing::Values("sgd {}", "momentum {}", "adam {}"), [](const auto& info) {
                           const std::string text = info.param;
                           return text.substr(0, text.find(' '));
                         });

TEST_P(ReplicaCallsTest, StaysEqualBitByBit) {
  PushRound({0, 1}, &host_.handler);
  ASSERT_TRUE(CommitRound(&host_.handler, {0, 1}, 2).ok());
  ASSERT_TRUE(Replicate().ok());
  EXPECT_EQ(StateOf(&replica_), StateOf(&host_.handler));
  for (int64_t round = 1; round < 4; ++round) {
    PushRound({round, 1}, &host_.handler);
    ASSERT_TRUE(ReplicateRound({round, 1}, 2).ok());
    ASSERT_TRUE(CommitRound(&host_.handler, {round, 1}, 2).ok());
    ASSERT_TRUE(CommitRound(&replica_, {round, 1}, 2).ok());
    EXPECT_EQ(StateOf(&replica_), StateOf(&host_.handler));
  }
}

TEST_P(ReplicaCallsTest, HasTheRoundWhenTheHostDiesBeforeTheCommit) {
  ASSERT_TRUE(Replicate().ok());
  PushRound({0, 1}, &host_.handler);
  ASSERT_TRUE(ReplicateRound({0, 1}, 2).ok());
  connection_.Sever();
  EXPECT_TRUE(ReplicateRound({0, 1}, 2).ok()) << "a repetition needs no host";
  ASSERT_TRUE(CommitRound(&replica_, {0, 1}, 2).ok());
  ASSERT_TRUE(CommitRound(&host_.handler, {0, 1}, 2).ok());
  EXPECT_EQ(StateOf(&replica_), StateOf(&host_.handler));
}

TEST_P(ReplicaCallsTest, TakesPushesInTheHostsPlace) {
  ASSERT_TRUE(Replicate().ok());
  PushRound({0, 1}, &host_.handler);
  ASSERT_TRUE(ReplicateRound({0, 1}, 2).ok());
  // The host is gone, and the round begins again.
  PushRound({0, 2}, &replica_);
  EXPECT_TRUE(absl::IsFailedPrecondition(CommitRound(&replica_, {0, 1}, 2)));
  EXPECT_TRUE(CommitRound(&replica_, {0, 2}, 2).ok());
}

// As it may come late, where the shard was served before it went home.
TEST_P(ReplicaCallsTest, APushThatTheSumsHaveCountsOnce) {
  ASSERT_TRUE(Replicate().ok());
  const TestRequest push = PushRound({0, 1}, &host_.handler);
  ASSERT_TRUE(ReplicateRound({0, 1}, 2).ok());
  for (int copy = 0; copy < 2; ++copy) {
    EXPECT_TRUE(CallBulk(&replica_, BulkMethod::kPush, push).ok());
  }
  EXPECT_TRUE(CommitRound(&replica_, {0, 1}, 2).ok());
  ASSERT_TRUE(CommitRound(&host_.handler, {0, 1}, 2).ok());
  EXPECT_EQ(StateOf(&replica_), StateOf(&host_.handler));
}

// As a worker repeats it that has had no answer when the shard moves.
TEST_P(ReplicaCallsTest, APushThatTheCopyHasCountsOnce) {
  const TestRequest whole = PushOf(placement_, 0, /*incarnation=*/1, /*sequence=*/1);
  const TestRequest begun = PushOf(placement_, 0, 2, 1);
  ASSERT_TRUE(CallBulk(&host_.handler, BulkMethod::kPushPull, whole).ok());
  ASSERT_TRUE(CallBulk(&host_.handler, BulkMethod::kPushPull, FirstRangeOf(begun)).ok());
  ASSERT_TRUE(Replicate().ok());
  const TestRequest next = PushOf(placement_, 0, 1, 2);
  for (const TestRequest& push : {whole, begun, next, next}) {
    const auto here = CallBulk(&replica_, BulkMethod::kPushPull, push);
    const auto there = CallBulk(&host_.handler, BulkMethod::kPushPull, push);
    ASSERT_TRUE(here.ok() && there.ok()) << here.status() << there.status();
    EXPECT_EQ(here->header.duplicate_blocks, there->header.duplicate_blocks);
    EXPECT_TRUE(here->payload == there->payload);
  }
  EXPECT_EQ(StateOf(&replica_), StateOf(&host_.handler));
}

// The sums stay at the host, so the replica may not take the round for whole.
TEST_P(ReplicaCallsTest, ARoundThatBeganBeforeTheCopyIsBegunAgain) {
  const TestRequest push = PushRound({0, 1}, &host_.handler);
  ASSERT_TRUE(Replicate().ok());
  EXPECT_TRUE(CallBulk(&replica_, BulkMethod::kPush, push).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CommitRound(&replica_, {0, 1}, 2)));
  PushRound({0, 2}, &replica_);
  EXPECT_TRUE(CommitRound(&replica_, {0, 2}, 2).ok());
}

TEST_P(ReplicaCallsTest, ARoundThatTheHostLacksIsRefused) {
  ASSERT_TRUE(Replicate().ok());
  const std::string before = StateOf(&replica_);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReplicateRound({0, 1}, 2)));
  PushRound({0, 1}, &host_.handler);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReplicateRound({0, 1}, 3)));
  connection_.Sever();
  EXPECT_TRUE(absl::IsUnavailable(ReplicateRound({0, 1}, 2)));
  EXPECT_TRUE(absl::IsFailedPrecondition(CommitRound(&replica_, {0, 1}, 2)));
  EXPECT_EQ(StateOf(&replica_), before);
}

TEST_P(ReplicaCallsTest, AHostThatIsGoneLeavesNoHalfCopy) {
  connection_.Sever();
  EXPECT_TRUE(absl::IsUnavailable(Replicate()));
  EXPECT_EQ(StatusOf(&replica_).state(), v1::ShardStatus::EMPTY);
  EXPECT_TRUE(absl::IsUnavailable(ReplicateRound({0, 1}, 2))) << "there is no shard";
}

// Another process may be at the host's address by now, with another state of the shard.
TEST_P(ReplicaCallsTest, AnotherStoreThanTheChiefsIsNotCopied) {
  const uint64_t store = StatusOf(&host_.handler).store_id();
  EXPECT_TRUE(absl::IsUnavailable(Replicate(store + 1)));
  EXPECT_EQ(StatusOf(&replica_).state(), v1::ShardStatus::EMPTY);
  EXPECT_TRUE(Replicate(store).ok());
}

TEST_P(ReplicaCallsTest, SumsGoFromTheStoreToTheReplicaThatTheChiefKnows) {
  const uint64_t store = StatusOf(&host_.handler).store_id();
  ASSERT_TRUE(Replicate().ok());
  const uint64_t replica = StatusOf(&replica_).store_id();
  PushRound({0, 1}, &host_.handler);
  EXPECT_TRUE(absl::IsUnavailable(ReplicateRound({0, 1}, 2, store + 1, replica)));
  EXPECT_TRUE(absl::IsUnavailable(ReplicateRound({0, 1}, 2, store, replica + 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(CommitRound(&replica_, {0, 1}, 2))) << "it has none";
  ASSERT_TRUE(ReplicateRound({0, 1}, 2, store, replica).ok());
  EXPECT_TRUE(absl::IsUnavailable(ReplicateRound({0, 1}, 2, store, replica + 1)))
      << "a repetition at another replica";
}

TEST_P(ReplicaCallsTest, OthersChiefsAreRefused) {
  ASSERT_TRUE(Replicate().ok());
  v1::ChiefHeartbeatRequest newer;
  *newer.mutable_header() = HeaderOf(1000);
  v1::ShardStatus status;
  ASSERT_TRUE(replica_.ChiefHeartbeat(newer, &status).ok());
  EXPECT_TRUE(absl::IsAborted(Replicate()));
  EXPECT_TRUE(absl::IsAborted(ReplicateRound({0, 1}, 2)));
  ASSERT_TRUE(host_.handler.ChiefHeartbeat(newer, &status).ok());
  v1::ReadShardRequest read;
  *read.mutable_header() = start_.header();
  EXPECT_TRUE(
      absl::IsAborted(host_.handler.ReadShard(read, [](const auto&) { return absl::OkStatus(); })));
}

// A process that keeps the replica of a shard whose host it reaches by `connect`.
class ReplicaKeeper {
 public:
  explicit ReplicaKeeper(ReplicaCalls::Connect connect)
      : handler_(
            {.incarnation = 9, .config_hash = kTestConfigHash, .connect_host = std::move(connect)},
            &clock_, &end_) {}

  ParameterHandler* handler() { return &handler_; }

  // Makes the shard at its host, and the replica of it.
  void Make(ParameterHandler* host, const v1::InitializeShardRequest& start) {
    v1::InitializeShardResponse made;
    EXPECT_EQ(host->Initialize(start, &made), absl::OkStatus());
    v1::ReplicateShardRequest request;
    *request.mutable_start() = start;
    EXPECT_EQ(handler_.ReplicateShard(request, &made), absl::OkStatus());
  }
  // Fetches the sums of a round with one contribution.
  absl::Status Fetch(const RoundId& round) {
    v1::ReplicateRoundRequest request;
    *request.mutable_header() = HeaderOf(kTestChief);
    request.set_round(round.round);
    request.set_attempt(round.attempt);
    request.set_contributions(1);
    v1::ReplicateRoundResponse response;
    return handler_.ReplicateRound(request, &response);
  }
  // Has a round pushed at the host, fetched and committed at both, which have the same values then.
  void ExpectFollows(ParameterHandler* host, const Placement& placement, size_t shard) {
    const RoundId round = {0, 1};
    const TestRequest push =
        StagedPushOf(placement, shard, 1, 1, round, /*weight=*/2, /*gradient=*/0.5f);
    ASSERT_TRUE(CallBulk(host, BulkMethod::kPush, push).ok());
    ASSERT_EQ(Fetch(round), absl::OkStatus());
    ASSERT_TRUE(CommitRound(host, round, 1).ok());
    ASSERT_TRUE(CommitRound(&handler_, round, 1).ok());
    const TestRequest pull = PullOf(placement, shard);
    EXPECT_TRUE(CallBulk(&handler_, BulkMethod::kPull, pull)->payload ==
                CallBulk(host, BulkMethod::kPull, pull)->payload);
  }

 private:
  ManualClock clock_;
  StopSignal end_;
  ParameterHandler handler_;
};

// The chief's calls of its own process name no shard.
TEST(ReplicaOfSecondShardTest, AsksTheHostForTheShardThatTheReplicaIsOf) {
  const Placement placement = TestPlacement(2);
  TestServer home;
  TestServer second;
  HostedShards host({{0, &home.handler, &home.handler}, {1, &second.handler, &second.handler}});
  v1::InitializeShardResponse made;
  ASSERT_TRUE(home.handler.Initialize(InitializeRequest(placement, 0), &made).ok());
  ReplicaKeeper replica(
      [&host](const std::string&) { return std::make_unique<FaultyParameterControl>(&host); });
  replica.Make(&second.handler, InitializeRequest(placement, 1));
  replica.ExpectFollows(&second.handler, placement, 1);
}

// Reads rounds from a host that a test plays.
class PlayedHost : public FaultyParameterControl {
 public:
  PlayedHost(ParameterControl* host, const std::string* part)
      : FaultyParameterControl(host), part_(part) {}

  absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) override {
    ByteRope bytes;
    bytes.AppendCopy(*part_);
    *part = std::move(bytes);
    return absl::OkStatus();
  }

 private:
  const std::string* const part_;
};

TEST(ReplicaPartsTest, PartsThatAreNoneAreRefused) {
  TestServer host;
  std::string part;
  ReplicaKeeper replica(
      [&](const std::string&) { return std::make_unique<PlayedHost>(&host.handler, &part); });
  replica.Make(&host.handler, InitializeRequest(TestPlacement(1), 0));
  const auto refusal = [&](std::string bytes) {
    part = std::move(bytes);
    const absl::Status status = replica.Fetch({0, 1});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(""), HasSubstr("a part of a round: expected 1 to"));
  EXPECT_THAT(refusal(EncodeRoundPart({1'000'000, 0})), HasSubstr("blocks, found 1000000"));
  EXPECT_THAT(refusal(EncodeRoundPart({1, 4}) + "four"),
              HasSubstr("a block of a round: expected 4008 bytes, found 4"));
  EXPECT_THAT(refusal(EncodeRoundPart({1, 5000}) + std::string(5000, 'x')),
              HasSubstr("expected its end, found 992 bytes"));
  EXPECT_THAT(refusal("\x08"), HasSubstr("malformed RoundPart"));
}

// Three parts of blocks of 1 MiB.
TEST(ReplicaPartsTest, ALargeShardTravelsInPartsOverGrpc) {
  const Placement placement = Placement::Compute({{"w", Shape({9, 1 << 18}), {}}}, 1);
  TestServer host;
  const LoopbackServer server(&host.handler);
  ReplicaKeeper replica([&](const std::string&) { return server.Connect(); });
  replica.Make(&host.handler, InitializeRequest(placement, 0));
  v1::ReadRoundRequest beyond;
  *beyond.mutable_header() = HeaderOf(kTestChief);
  beyond.set_first_block(9);
  ByteRope none;
  EXPECT_EQ(server.Connect()->ReadRound(beyond, &none),
            absl::InvalidArgumentError("ReadRound: expected a block below 9, found 9"));
  replica.ExpectFollows(&host.handler, placement, 0);
}

TEST(NoReplicaTest, AServerThatCallsNoOthersRefuses) {
  TestServer server;
  v1::ReplicateShardRequest request;
  v1::InitializeShardResponse response;
  const absl::Status status = server.handler.ReplicateShard(request, &response);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("keeps no replicas"));
}

}  // namespace
}  // namespace keelson
