// What a client gives up on, takes for malformed, and refuses to be created with.
#include <algorithm>
#include <string>

#include "core/client/sharded_parameter_client_testing.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class MalformedTest : public ClientTest {
 protected:
  void ExpectMalformed(const std::string& what) {
    const absl::Status status = client_->Pull();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0: malformed answer to Pull: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_THAT(client_->values()[1], Each(0)) << "the message's values were written";
  }
};

TEST_F(ClientTest, GivesUpAfterItsPatienceAndSaysForWhomItWaited) {
  shard_.before = [this] {
    clock_.Advance(absl::Minutes(4));
    return absl::UnavailableError("connection refused");
  };
  const absl::Status status = client_->Pull();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pulling from ps-0 for "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"));
  EXPECT_GT(shard_.calls.size(), 2u);
}

TEST_F(ClientTest, GivesUpAPushByItsName) {
  shard_.before = [this] {
    if (shard_.calls.size() == 2) clock_.Advance(absl::Minutes(11));
    return absl::DeadlineExceededError("slow");
  };
  const absl::Status status = Push(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pushing to ps-0 for 11m"));
}

TEST_F(ClientTest, WaitingIsReportedEveryHalfMinute) {
  int calls = 0;
  shard_.before = [&] {
    if (++calls > 10) return absl::OkStatus();
    clock_.Advance(absl::Seconds(10));
    return absl::UnavailableError("connection refused");
  };
  testing::internal::CaptureStderr();
  ASSERT_TRUE(client_->Pull().ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("pulling from ps-0 for "));
  EXPECT_THAT(log, HasSubstr("connection refused"));
  EXPECT_GE(std::count(log.begin(), log.end(), '\n'), 2);
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 4) << "100 seconds";
}

TEST_F(ClientTest, BytesThatAreNoAnswerAreMalformed) {
  class Garbage : public BulkHandler {
   public:
    absl::StatusOr<ByteRope> Bulk(BulkMethod, ByteRope) override {
      ByteRope rope;
      rope.AppendCopy("\x7a\x7f");  // a payload longer than what is left
      return rope;
    }
  };
  Garbage garbage;
  auto client = ShardedParameterClient::Create(FastOptions(), variables_, placement_,
                                               Inline({&garbage}), &clock_, &stop_);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status status = (*client)->Pull();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0: malformed answer to Pull: "));
}

TEST_F(MalformedTest, AnswerWithAForeignBlockIsMalformed) {
  shard_.after = [](BulkResponse* response, auto*) {
    response->blocks[0].block = 99;
    return absl::OkStatus();
  };
  ExpectMalformed("was not asked for");
}

TEST_F(MalformedTest, AnswerInAnotherOrderIsMalformed) {
  shard_.after = [](BulkResponse* response, auto*) {
    std::swap(response->blocks[0], response->blocks[1]);
    return absl::OkStatus();
  };
  ExpectMalformed("is missing");
}

TEST_F(MalformedTest, ShortPayloadIsMalformed) {
  shard_.after = [](auto*, std::string* payload) {
    payload->pop_back();
    return absl::OkStatus();
  };
  ExpectMalformed("shorter than its blocks");
}

TEST_F(MalformedTest, LongPayloadIsMalformed) {
  shard_.after = [](auto*, std::string* payload) {
    payload->append("123");
    return absl::OkStatus();
  };
  ExpectMalformed("3 bytes beyond its blocks");
}

TEST_F(MalformedTest, AnswerWithoutABlockThatIsNotKnownIsMalformed) {
  shard_.after = [this](BulkResponse* response, std::string* payload) {
    const BlockHeader last = response->blocks.back();
    const int64_t elements = placement_.BlockElements(last.partition, last.block);
    payload->resize(payload->size() - EncodedBytes(WireFormat::kFloat32, elements));
    response->blocks.pop_back();
    return absl::OkStatus();
  };
  ExpectMalformed("a block that the caller does not have is missing");
}

TEST_F(ClientTest, PushAnswersHoldAllBlocks) {
  ASSERT_TRUE(client_->Pull().ok());
  shard_.after = [](BulkResponse* response, std::string* payload) {
    response->blocks.clear();
    payload->clear();
    return absl::OkStatus();
  };
  const absl::Status status = Push(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ps-0: malformed answer to PushPull: a block"));
}

TEST_F(CreateTest, PlacementOfOtherVariablesIsRefused) {
  ExpectInvalid(Create({{"a", Shape({4}), {}}}, 1), "b[5]");
  ExpectInvalid(Create({{"a", Shape({4}), {}}, {"b", Shape({6}), {}}}, 1), "b[5]");
  ExpectInvalid(Create({{"a", Shape({4}), {}}, {"b", Shape({5}), {}}, {"c", Shape({1}), {}}}, 1),
                "expected 3 variables, found 2");
}

TEST_F(CreateTest, AnotherNumberOfShardsIsRefused) {
  ExpectInvalid(Create(variables_, 2), "expected 2 shards, found 1");
  EXPECT_TRUE(Create(variables_, 1).ok());
}

TEST_F(CreateTest, DepthsThatCannotBeAreRefused) {
  ShardedParameterClient::Options options;
  options.depth = 3;
  ExpectInvalid(Create(variables_, 1, options), "depth: expected 1 or 2, found 3");
  options.depth = 2;
  ExpectInvalid(Create(variables_, 1, options), "background");
}

TEST_F(CreateTest, FormatsAreOnePerVariable) {
  ShardedParameterClient::Options options;
  options.formats.resize(3);
  ExpectInvalid(Create(variables_, 1, options), "formats: expected 2, found 3");
}

TEST_F(CreateTest, MemoryThatDoesNotFitIsRefused) {
  std::vector<float> a(4), b(5), short_b(4);
  ShardedParameterClient::Options options;
  options.memory = ParameterMemory{{absl::MakeSpan(b), absl::MakeSpan(a)}, {absl::MakeSpan(b)}};
  ExpectInvalid(Create(variables_, 1, options), "gradients of 2 variables, found 1");
  options.memory->gradients = {absl::MakeSpan(short_b), absl::MakeSpan(a)};
  ExpectInvalid(Create(variables_, 1, options), "gradients of b: expected 5 elements, found 4");
  options.memory->gradients = options.memory->values;
  EXPECT_TRUE(Create(variables_, 1, options).ok());
  options.depth = 2;
  options.background = true;
  ExpectInvalid(Create(variables_, 1, options), "own memory");
}

}  // namespace
}  // namespace keelson
