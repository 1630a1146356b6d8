// Bulk messages that a handler refuses, as a whole and with a text that says where they are wrong.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr WireFormat kAllFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                      WireFormat::kBfloat16, WireFormat::kInt8, WireFormat::kTopK};

class BulkRefusalsTest : public testing::Test {
 protected:
  explicit BulkRefusalsTest(bool reject_non_finite = false) {
    v1::InitializeShardRequest request = InitializeRequest(placement_, 0, "adam {}");
    request.set_reject_non_finite(reject_non_finite);
    v1::InitializeShardResponse response;
    const absl::Status status = server_.handler.Initialize(request, &response);
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
  // A push that no worker has sent yet.
  TestRequest Push(WireFormat format = WireFormat::kFloat32) const {
    return EncodedPushOf(placement_, 0, incarnation_ + 1, 1, format, WireFormat::kFloat32);
  }
  // Refused by Push and PushPull with `text`, and nothing has happened.
  void ExpectRefused(const TestRequest& push, const std::string& text) {
    const Arrays before = Values();
    for (const BulkMethod method : {BulkMethod::kPush, BulkMethod::kPushPull}) {
      const absl::Status status = Call(method, push).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()),
                  testing::AllOf(StartsWith(method == BulkMethod::kPush ? "push: " : "pushpull: "),
                                 HasSubstr(text)));
    }
    EXPECT_EQ(Values(), before);
    const auto sound = Call(BulkMethod::kPush, PushOf(placement_, 0, ++incarnation_, 1));
    ASSERT_TRUE(sound.ok()) << sound.status();
    EXPECT_EQ(sound->header.duplicate_blocks, 0u) << "the refused push was not noted";
  }

  const Placement placement_ = TestPlacement(1);
  TestServer server_;
  uint64_t incarnation_ = 0;
};

TEST_F(BulkRefusalsTest, PayloadThatIsTooShortNamesTheBlockThatLacksIt) {
  for (const WireFormat format : kAllFormats) {
    TestRequest push = Push(format);
    push.payload.pop_back();
    ExpectRefused(push, "variable scale, block 0: expected ");
  }
  TestRequest push = Push();
  push.payload.resize(4000 + 1000);
  ExpectRefused(push, "variable conv/kernel, block 1: expected 4000 bytes, found 1000 left");
  push.payload.clear();
  ExpectRefused(push, "variable conv/kernel, block 0: expected 4000 bytes, found 0 left");
}

TEST_F(BulkRefusalsTest, PayloadThatIsTooLongNamesTheLastBlock) {
  for (const WireFormat format : kAllFormats) {
    TestRequest push = Push(format);
    push.payload += "xyz";
    ExpectRefused(push,
                  "variable scale, block 0: expected the end of the payload after it, "
                  "found 3 bytes");
  }
}

TEST_F(BulkRefusalsTest, PayloadOfAnotherFormatIsRefused) {
  TestRequest push = Push(WireFormat::kFloat16);
  for (BlockRange& range : push.header.ranges) range.format = WireFormat::kFloat32;
  ExpectRefused(push, "expected ");
}

TEST_F(BulkRefusalsTest, MoreThanTwoStepsUnderWayAreRefused) {
  TestRequest push = Push();
  push.header.steps_under_way = 3;
  ExpectRefused(push, "steps_under_way: expected at most 2, found 3");
  push.header.steps_under_way = 2;
  push.header.unseen_pushes = 2;
  ExpectRefused(push, "unseen_pushes: expected at most 1 with 2 steps under way, found 2");
  push.header = Push().header;
  push.header.unseen_pushes = 1;
  ExpectRefused(push, "unseen_pushes: expected at most 0 with 1 steps under way, found 1");
}

TEST_F(BulkRefusalsTest, PayloadWithoutBlocksIsRefused) {
  TestRequest push = Push();
  push.header.ranges.clear();
  push.payload = "1234";
  ExpectRefused(push, "expected no payload without blocks, found 4 bytes");
}

TEST_F(BulkRefusalsTest, BlocksThatTheShardDoesNotHoldAreRefused) {
  TestRequest push = Push();
  push.header.ranges[0].partition = 99;
  ExpectRefused(push, "partition 99");
  push = Push();
  push.header.ranges[0].partition = 0xffffffff;
  ExpectRefused(push, "partition 4294967295");
  push = Push();
  ++push.header.ranges[0].num_blocks;
  ExpectRefused(push, "variable conv/kernel, partition 0: expected blocks 0..2, found block 3");
  push = Push();
  push.header.ranges[0].first_block = 0xffffffff;
  ExpectRefused(push, "found block 4294967295");
}

TEST_F(BulkRefusalsTest, BlockOfAnotherShardIsNamed) {
  const Placement two = TestPlacement(2);
  const TestServers servers = StartServers(two, "sgd {}");
  TestRequest pull = PullOf(two, 0);
  pull.header.ranges[0].partition = static_cast<uint32_t>(two.PartitionsOf(1).front());
  const absl::Status status = CallBulk(&servers[0]->handler, BulkMethod::kPull, pull).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("variable " + two.VariableOf(two.PartitionsOf(1).front()).name));
}

TEST_F(BulkRefusalsTest, BlockThatIsListedTwiceIsRefused) {
  TestRequest push = Push();
  push.header.ranges.push_back({0, 1, 1});
  push.payload += std::string(4000, '\0');
  ExpectRefused(push, "variable conv/kernel, block 1: expected once, found listed twice");
  std::swap(push.header.ranges.front(), push.header.ranges.back());
  ExpectRefused(push, "listed twice");
  TestRequest pull = PullOf(placement_, 0);
  pull.header.ranges.push_back(pull.header.ranges[1]);
  EXPECT_EQ(Call(BulkMethod::kPull, pull).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BulkRefusalsTest, RangesThatTouchOrAreEmptyAreFine) {
  TestRequest pull = PullOf(placement_, 0);
  pull.header.ranges = {{0, 2, 1}, {0, 0, 2}, {0, 1, 0}, {1, 0, 1}};
  const auto response = Call(BulkMethod::kPull, pull);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->header.blocks.size(), 4u);
}

TEST_F(BulkRefusalsTest, WrongNumberOfKnownVersionsIsRefused) {
  TestRequest pull = PullOf(placement_, 0);
  pull.header.known_versions.push_back(0);
  const absl::Status status = Call(BulkMethod::kPull, pull).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("known versions, found 1"));
}

TEST_F(BulkRefusalsTest, PullWithAPayloadIsRefused) {
  TestRequest pull = PullOf(placement_, 0);
  pull.payload = "12345";
  EXPECT_EQ(Call(BulkMethod::kPull, pull).status(),
            absl::InvalidArgumentError("pull: expected no payload, found 5 bytes"));
}

TEST_F(BulkRefusalsTest, ValuesGoOutInElementwiseFormatsOnly) {
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kTopK}) {
    const std::string expected = absl::StrCat(
        "variable conv/kernel, block 0: expected values as float32, float16 or "
        "bfloat16, found ",
        WireFormatName(format));
    TestRequest pull = PullOf(placement_, 0);
    pull.header.ranges[0].format = format;
    EXPECT_EQ(Call(BulkMethod::kPull, pull).status(),
              absl::InvalidArgumentError("pull: " + expected));
    const Arrays before = Values();
    TestRequest push = Push();
    push.header.ranges[0].pull_format = format;
    EXPECT_EQ(Call(BulkMethod::kPushPull, push).status(),
              absl::InvalidArgumentError("pushpull: " + expected));
    EXPECT_EQ(Values(), before);
  }
}

TEST_F(BulkRefusalsTest, PayloadOfABlockWithoutAGradientIsRefused) {
  TestRequest push = Push();
  push.header.ranges.back().absent = true;
  ExpectRefused(push, "expected the end of the payload after it, found ");
}

TEST_F(BulkRefusalsTest, ABlockWithoutAGradientInARoundIsRefused) {
  TestRequest push = Push();
  push.header.attempt = 1;
  push.header.weight = 1;
  for (BlockRange& range : push.header.ranges) range.absent = true;
  push.payload.clear();
  EXPECT_THAT(std::string(Call(BulkMethod::kPush, push).status().message()),
              HasSubstr("expected a gradient in a round, found none"));
}

TEST_F(BulkRefusalsTest, NegativeStepsAreRefused) {
  TestRequest push = Push();
  push.header.step = -1;
  ExpectRefused(push, "step: expected at least 0, found -1");
  push = Push();
  push.header.pulled_shard_step = -5;
  ExpectRefused(push, "pulled_shard_step: expected at least 0, found -5");
}

TEST_F(BulkRefusalsTest, TopKPositionBeyondTheBlockIsRefused) {
  TestRequest push = Push(WireFormat::kTopK);
  push.header.ranges.resize(1);
  push.header.ranges[0].num_blocks = 2;
  const std::string sound = EncodeGradient(WireFormat::kTopK, std::vector<float>(1000, 1));
  std::string wrong = EncodeGradient(WireFormat::kTopK, {1});
  const uint32_t position = 1000;
  wrong.replace(4, 4, reinterpret_cast<const char*>(&position), 4);
  push.payload = sound + wrong;
  ExpectRefused(push, "variable conv/kernel, block 1: expected positions below 1000, found 1000");
}

TEST_F(BulkRefusalsTest, BytesThatAreNoMessageAreRefused) {
  for (const BulkMethod method : {BulkMethod::kPull, BulkMethod::kPush, BulkMethod::kPushPull}) {
    ByteRope garbage;
    garbage.AppendCopy("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    const absl::Status status = server_.handler.Bulk(method, std::move(garbage)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST_F(BulkRefusalsTest, DamagedMessagesNeverApplyInPart) {
  const std::string sound = MessageOf(Push()).ToString();
  for (uint64_t i = 0; i < 200; ++i) {
    const Arrays before = Values();
    // Only bytes of the header are damaged, since any bytes are a valid payload.
    std::string damaged = sound;
    const size_t position = Philox(1, 1, i)[0] % 60;
    damaged[position] = static_cast<char>(damaged[position] ^ (1 << (i % 8)));
    if (i % 3 == 0) damaged.resize(damaged.size() - 1 - i);
    const auto response = server_.handler.Bulk(BulkMethod::kPush, Fragmented(damaged, 900, i));
    if (!response.ok()) {
      EXPECT_EQ(Values(), before);
    }
  }
}

// reject_non_finite

class RejectNonFiniteTest : public BulkRefusalsTest {
 protected:
  RejectNonFiniteTest() : BulkRefusalsTest(/*reject_non_finite=*/true) {}
};

TEST_F(RejectNonFiniteTest, RefusesTheMessageAndNamesTheBlock) {
  for (const WireFormat format : kAllFormats) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      TestRequest push = Push(format);
      push.header.ranges.resize(1);
      push.payload.clear();
      for (uint32_t b = 0; b < push.header.ranges[0].num_blocks; ++b) {
        std::vector<float> gradient(placement_.BlockElements(0, b), 1);
        if (b == 2) gradient[300] = bad;
        push.payload += EncodeGradient(format, gradient);
      }
      ExpectRefused(push, "variable conv/kernel, block 2: expected finite elements");
    }
  }
}

TEST_F(RejectNonFiniteTest, TakesWhatIsFinite) {
  for (const WireFormat format : kAllFormats) {
    EXPECT_TRUE(Call(BulkMethod::kPush, Push(format)).ok());
    ++incarnation_;
  }
}

TEST_F(BulkRefusalsTest, TakesWhatIsNotFiniteWhereAllowed) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(Call(BulkMethod::kPush, ConstantPushOf(placement_, 0, 1, 1, infinity)).ok());
}

}  // namespace
}  // namespace keelson
