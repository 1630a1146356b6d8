// The bulk calls as a handler serves them: formats and answers. bulk_refusals_test.cc has what it
// refuses.
#include "ps_server/service/bulk_calls.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

constexpr WireFormat kFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                   WireFormat::kBfloat16, WireFormat::kInt8, WireFormat::kTopK};
constexpr WireFormat kValueFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                        WireFormat::kBfloat16};

// Decodes an answer whose blocks are all in `format`.
Arrays DecodeAnswer(const Placement& placement, TestResponse response, WireFormat format) {
  std::string decoded;
  size_t from = 0;
  for (const BlockHeader& block : response.header.blocks) {
    const int64_t elements = placement.BlockElements(block.partition, block.block);
    const size_t bytes = EncodedBytes(format, elements);
    decoded += BytesOf(DecodeGradient(format, response.payload.substr(from, bytes), elements));
    from += bytes;
  }
  EXPECT_EQ(from, response.payload.size());
  response.payload = decoded;
  Arrays arrays;
  Receive(placement, response, &arrays);
  return arrays;
}

// Every value as it is after a journey in `format`.
Arrays Rounded(Arrays arrays, WireFormat format) {
  for (auto& [name, values] : arrays) {
    values =
        DecodeGradient(format, EncodeGradient(format, values), static_cast<int64_t>(values.size()));
  }
  return arrays;
}

class BulkCallsTest : public testing::Test {
 protected:
  BulkCallsTest() {
    v1::InitializeShardResponse response;
    const absl::Status status =
        server_.handler.Initialize(InitializeRequest(placement_, 0, "adam {}"), &response);
    EXPECT_TRUE(status.ok()) << status;
  }

  absl::StatusOr<TestResponse> Call(BulkMethod method, const TestRequest& request) {
    return CallBulk(&server_.handler, method, request);
  }
  Arrays Values() {
    Arrays arrays;
    const auto response = Call(BulkMethod::kPull, PullOf(placement_, 0));
    EXPECT_TRUE(response.ok()) << response.status();
    Receive(placement_, *response, &arrays);
    return arrays;
  }
  const Placement placement_ = TestPlacement(1);
  TestServer server_;
};

TEST_F(BulkCallsTest, EveryGradientFormatInAnyFragmentsIsAppliedAsItDecodes) {
  uint64_t sequence = 0;
  for (const WireFormat format : kFormats) {
    for (const size_t longest : {1, 3, 1000, 1 << 20}) {
      SCOPED_TRACE(absl::StrCat(WireFormatName(format), " in fragments of ", longest));
      const TestServers expected = StartServers(placement_, "adam {}");
      const TestServers servers = StartServers(placement_, "adam {}");
      const TestRequest push =
          EncodedPushOf(placement_, 0, 1, ++sequence, format, WireFormat::kFloat32);
      const ByteRope whole = MessageOf(push);
      const auto response = servers[0]->handler.Bulk(
          BulkMethod::kPush, Fragmented(whole.ToString(), longest, sequence));
      ASSERT_TRUE(response.ok()) << response.status();
      TestRequest decoded = PushOf(placement_, 0, 1, sequence);
      decoded.payload.clear();
      size_t from = 0;
      for (const size_t p : placement_.PartitionsOf(0)) {
        for (int64_t b = 0; b < placement_.NumBlocks(p); ++b) {
          const int64_t elements = placement_.BlockElements(p, b);
          const std::string rest = push.payload.substr(from);
          decoded.payload += BytesOf(DecodeGradient(format, rest, elements));
          uint32_t kept = 0;
          std::memcpy(&kept, rest.data(), std::min(rest.size(), sizeof(kept)));
          from += format == WireFormat::kTopK ? TopKBytes(kept) : EncodedBytes(format, elements);
        }
      }
      ASSERT_EQ(from, push.payload.size());
      ASSERT_TRUE(CallBulk(&expected[0]->handler, BulkMethod::kPush, decoded).ok());
      EXPECT_EQ(PullAll(placement_, servers), PullAll(placement_, expected));
    }
  }
}

TEST_F(BulkCallsTest, PullBringsValuesInEachFormat) {
  const Arrays values = Values();
  for (const WireFormat format : kValueFormats) {
    TestRequest pull = PullOf(placement_, 0);
    for (BlockRange& range : pull.header.ranges) range.format = format;
    const auto response = Call(BulkMethod::kPull, pull);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(DecodeAnswer(placement_, *response, format), Rounded(values, format));
  }
}

TEST_F(BulkCallsTest, PushPullIsPushThenPull) {
  uint64_t sequence = 0;
  const TestServers others = StartServers(placement_, "adam {}");
  for (const WireFormat format : kFormats) {
    for (const WireFormat pull_format : kValueFormats) {
      const TestRequest push = EncodedPushOf(placement_, 0, 1, ++sequence, format, pull_format);
      const auto fused = Call(BulkMethod::kPushPull, push);
      ASSERT_TRUE(fused.ok()) << fused.status();
      const auto pushed = CallBulk(&others[0]->handler, BulkMethod::kPush, push);
      ASSERT_TRUE(pushed.ok()) << pushed.status();
      TestRequest pull = PullOf(placement_, 0);
      for (BlockRange& range : pull.header.ranges) range.format = pull_format;
      const auto pulled = CallBulk(&others[0]->handler, BulkMethod::kPull, pull);
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      EXPECT_EQ(fused->payload, pulled->payload);
      EXPECT_EQ(fused->header.blocks, pulled->header.blocks);
      EXPECT_EQ(fused->header.shard_step, pulled->header.shard_step);
      EXPECT_EQ(fused->header.staleness, pushed->header.staleness);
    }
  }
}

TEST_F(BulkCallsTest, BlocksWithoutAGradientStayAsTheyAreAndAreAnswered) {
  ASSERT_TRUE(Call(BulkMethod::kPush, PushOf(placement_, 0, 1, 1)).ok());
  const Arrays before = Values();
  TestRequest push = PushOf(placement_, 0, 1, 2);
  const BlockRange first = push.header.ranges.at(0);
  ASSERT_GT(push.header.ranges.size(), 1u);
  push.header.ranges[0].absent = true;
  size_t bytes = 0;
  for (uint32_t i = 0; i < first.num_blocks; ++i) {
    bytes += 4 * placement_.BlockElements(first.partition, first.first_block + i);
  }
  push.payload.erase(0, bytes);
  const auto response = Call(BulkMethod::kPushPull, push);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.duplicate_blocks, 0u);
  Arrays answered;
  Receive(placement_, *response, &answered);
  const Arrays after = Values();
  EXPECT_EQ(answered, after);
  const std::string& absent = placement_.VariableOf(first.partition).name;
  for (const auto& [name, values] : after) {
    if (name == absent) {
      EXPECT_EQ(values, before.at(name));
    } else {
      EXPECT_NE(values, before.at(name)) << name;
    }
  }
}

TEST_F(BulkCallsTest, RepeatedPushPullBringsTheValuesAndChangesNothing) {
  const TestRequest push = PushOf(placement_, 0, 1, 1);
  const auto first = Call(BulkMethod::kPushPull, push);
  const auto second = Call(BulkMethod::kPushPull, push);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->header.duplicate_blocks, 0u);
  EXPECT_EQ(second->header.duplicate_blocks, second->header.blocks.size());
  EXPECT_EQ(second->payload, first->payload);
  EXPECT_EQ(second->header.blocks, first->header.blocks);
  EXPECT_EQ(second->header.shard_step, 1);
}

TEST_F(BulkCallsTest, AnswersDoNotChangeWhileTrainingGoesOn) {
  const Placement large = Placement::Compute({{"w", Shape({3000, 100}), {}}}, 1);
  const TestServers servers = StartServers(large, "momentum {}");
  const auto pushed =
      servers[0]->handler.Bulk(BulkMethod::kPushPull, MessageOf(PushOf(large, 0, 1, 1)));
  const auto pulled = servers[0]->handler.Bulk(BulkMethod::kPull, MessageOf(PullOf(large, 0)));
  ASSERT_TRUE(pushed.ok() && pulled.ok());
  EXPECT_GT(pulled->fragments().size(), 1u);
  const std::string payload = ParseResponse(*pulled).payload;
  EXPECT_EQ(ParseResponse(*pushed).payload, payload);
  for (uint64_t sequence = 2; sequence < 5; ++sequence) PushAll(large, servers, 1, sequence);
  EXPECT_EQ(ParseResponse(*pushed).payload, payload);
  EXPECT_EQ(ParseResponse(*pulled).payload, payload);
  EXPECT_NE(BytesOf(PullAll(large, servers).at("w")), payload);
}

TEST_F(BulkCallsTest, SendsBlocksInTheOrderThatTheyWereAskedFor) {
  TestRequest pull = PullOf(placement_, 0);
  std::reverse(pull.header.ranges.begin(), pull.header.ranges.end());
  const auto response = Call(BulkMethod::kPull, pull);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.blocks[0].partition, pull.header.ranges[0].partition);
  Arrays arrays;
  Receive(placement_, *response, &arrays);
  EXPECT_EQ(arrays, Values());
}

TEST_F(BulkCallsTest, AnswersNothingToNothing) {
  for (const BulkMethod method : {BulkMethod::kPull, BulkMethod::kPush, BulkMethod::kPushPull}) {
    TestRequest request = PullOf(placement_, 0);
    request.header.ranges.clear();
    request.header.last_part = true;
    const auto response = Call(method, request);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->header.shard_step, 0);
    EXPECT_EQ(response->payload, "");
  }
}

TEST_F(BulkCallsTest, StalenessOfPushPullCountsOthersOnly) {
  TestRequest push = PushOf(placement_, 0, 1, 1);
  auto response = Call(BulkMethod::kPushPull, push);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_TRUE(Call(BulkMethod::kPush, PushOf(placement_, 0, 99, 1)).ok());
  push.header.sequence = 2;
  push.header.pulled_shard_step = response->header.shard_step;
  response = Call(BulkMethod::kPushPull, push);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.staleness, 1);
  EXPECT_EQ(response->header.shard_step, 3);
}

TEST_F(BulkCallsTest, CreditsFallWithTheNumberOfClients) {
  auto response = Call(BulkMethod::kPush, PushOf(placement_, 0, 1, 1));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.credits, 8u);
  for (uint64_t client = 2; client <= 20; ++client) {
    response = Call(BulkMethod::kPush, PushOf(placement_, 0, client, 1));
    ASSERT_TRUE(response.ok()) << response.status();
  }
  EXPECT_EQ(response->header.credits, 3u);
  v1::ShardStatus status;
  ASSERT_TRUE(server_.handler.GetStatus({}, &status).ok());
  EXPECT_EQ(status.active_clients(), 20);
  EXPECT_EQ(status.credits(), 3u);
  server_.clock.Advance(absl::Seconds(11));
  response = Call(BulkMethod::kPull, PullOf(placement_, 0));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.credits, 8u);
}

TEST_F(BulkCallsTest, CountsBytesAsTheyWereSent) {
  ASSERT_TRUE(Call(BulkMethod::kPushPull,
                   EncodedPushOf(placement_, 0, 1, 1, WireFormat::kFloat16, WireFormat::kBfloat16))
                  .ok());
  v1::ShardStatus status;
  ASSERT_TRUE(server_.handler.GetStatus({}, &status).ok());
  EXPECT_EQ(status.pushed_bytes(), placement_.ShardBytes(0) / 2);
  EXPECT_EQ(status.pulled_bytes(), placement_.ShardBytes(0) / 2);
}

}  // namespace
}  // namespace keelson
