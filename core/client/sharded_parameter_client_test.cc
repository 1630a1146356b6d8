#include "core/client/sharded_parameter_client.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include "core/client/client_mode_testing.h"
#include "core/client/exchange/fake_shard_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "w" has 8 blocks, two messages in float32; "b" shares the first one, for it comes last.
std::vector<VariableSpec> Variables() {
  return {{"w", Shape({2000, 1000}), {}}, {"b", Shape({10}), {}}};
}

ShardedParameterClient::Options FastOptions() {
  ShardedParameterClient::Options options;
  options.self = {Role::kWorker, 3};
  options.incarnation = 42;
  options.retry.first_pause = absl::Microseconds(1);
  options.retry.longest_pause = absl::Microseconds(1);
  return options;
}

// The value that all elements have; fails when they differ.
float Uniform(absl::Span<const float> values) {
  EXPECT_EQ(std::count(values.begin(), values.end(), values[0]),
            static_cast<int64_t>(values.size()));
  return values[0];
}

// Each element is `value`, or less by 1 at most `ahead` times.
void ExpectAhead(absl::Span<const float> values, float value, int ahead) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  EXPECT_LE(*greatest, value);
  EXPECT_GE(*least, value - static_cast<float>(ahead));
}

void Fill(absl::Span<float> array, float value) { std::fill(array.begin(), array.end(), value); }

std::unique_ptr<BulkTransport> Inline(std::vector<BulkHandler*> shards) {
  return std::make_unique<InlineBulkTransport>(std::move(shards));
}

class ClientTestBase {
 protected:
  std::unique_ptr<ShardedParameterClient> Create(ShardedParameterClient::Options options) {
    auto client = ShardedParameterClient::Create(std::move(options), Variables(), placement_,
                                                 Inline({&shard_}), &clock_, &stop_);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  const Placement placement_ = Placement::Compute(Variables(), 1);
  FakeShard shard_{&placement_};
  ManualClock clock_;
  StopSignal stop_;
};

// ---- What holds in every mode.

class ModesTest : public ClientTestBase, public testing::TestWithParam<Mode> {
 protected:
  ShardedParameterClient::Options ModeOptions() const {
    ShardedParameterClient::Options options = FastOptions();
    options.depth = GetParam().depth;
    options.background = GetParam().background;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, ModesTest,
                         testing::Values(Mode{"Strict", 1, false},
                                         Mode{"StrictBackground", 1, true},
                                         Mode{"Depth2", 2, true}),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(ModesTest, ValuesAreZerosThenTheServers) {
  const auto client = Create(ModeOptions());
  EXPECT_EQ(client->depth(), GetParam().depth);
  ASSERT_EQ(client->values().size(), 2u);
  EXPECT_EQ(client->values()[1].size(), 10u);
  EXPECT_EQ(Uniform(client->values()[0]), 0);
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(Uniform(client->values()[0]), 1);
  EXPECT_EQ(Uniform(client->values()[1]), 1);
}

TEST_P(ModesTest, EveryStepIsAppliedOnceAndItsValuesComeBack) {
  const auto client = Create(ModeOptions());
  ASSERT_TRUE(client->Pull().ok());
  const int lag = GetParam().depth - 1;
  std::vector<int64_t> acknowledged;
  for (int step = 0; step < 5; ++step) {
    // Answers to the step under way may be among the values, message by message.
    ExpectAhead(client->values()[0], static_cast<float>(1 - std::max(0, step - lag)),
                std::min(step, lag));
    client->Begin(100 + step);
    Fill(client->gradients()[1], 1);
    client->Offer(1);
    Fill(client->gradients()[0], 1);
    if (step % 2 == 0) client->Offer(0);  // else End offers it
    const auto result = client->End();
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->has_value(), step >= lag);
    if (step < lag) continue;
    acknowledged.push_back((*result)->step);
    EXPECT_EQ((*result)->staleness, std::min<int64_t>((*result)->step - 100, lag));
    EXPECT_EQ((*result)->retries, 0);
    EXPECT_GT((*result)->bytes_pushed, 8'000'040);
    EXPECT_LT((*result)->bytes_pushed, 8'001'000);
    EXPECT_GT((*result)->bytes_pulled, 8'000'040);
  }
  const auto last = client->Drain();
  ASSERT_TRUE(last.ok()) << last.status();
  ASSERT_EQ(last->has_value(), lag == 1);
  if (lag == 1) acknowledged.push_back((*last)->step);
  EXPECT_THAT(acknowledged, ElementsAre(100, 101, 102, 103, 104));
  EXPECT_EQ(Uniform(client->values()[0]), -4);
  EXPECT_EQ(Uniform(client->values()[1]), -4);
  EXPECT_EQ(shard_.shard_step, 5);
  EXPECT_FALSE(client->Drain()->has_value());
}

TEST_P(ModesTest, CallsThatFailAreRepeatedWithTheSameBytes) {
  const auto client = Create(ModeOptions());
  ASSERT_TRUE(client->Pull().ok());
  shard_.calls.clear();
  int calls = 0;
  // The first call is not executed; the second and third are, but their answers are lost.
  shard_.before = [&] { return calls++ == 0 ? absl::UnavailableError("away") : absl::OkStatus(); };
  shard_.after = [&](auto*, auto*) {
    return calls <= 3 ? absl::DeadlineExceededError("slow") : absl::OkStatus();
  };
  client->Begin(0);
  for (const auto& gradient : client->gradients()) Fill(gradient, 2);
  auto result = client->End();
  ASSERT_TRUE(result.ok()) << result.status();
  if (!result->has_value()) result = client->Drain();
  ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
  EXPECT_EQ((*result)->retries, 3);
  EXPECT_EQ(Uniform(client->values()[0]), -1);
  ASSERT_EQ(shard_.calls.size(), 5u);
  for (const FakeShard::Call& call : shard_.calls) {
    const bool first = call.request.last_part == shard_.calls[0].request.last_part;
    EXPECT_TRUE(call.bytes == (first ? shard_.calls[0] : shard_.calls[1]).bytes);
  }
}

TEST_P(ModesTest, ShardThatStartsOverWithinAPushIsPulledWhole) {
  const auto client = Create(ModeOptions());
  ASSERT_TRUE(client->Pull().ok());
  int calls = 0;
  shard_.before = [&] {
    if (++calls == 2) shard_.StartOver(50);
    return absl::OkStatus();
  };
  client->Begin(0);
  for (const auto& gradient : client->gradients()) Fill(gradient, 1);
  ASSERT_TRUE(client->End().ok());
  ASSERT_TRUE(client->Drain().ok());
  // The first message's push was lost with the old store, the second one's was applied to the new.
  EXPECT_EQ(Uniform(client->values()[1]), 50);
  EXPECT_EQ(client->values()[0].front(), 50);
  EXPECT_EQ(client->values()[0].back(), 49);
  client->Begin(1);
  for (const auto& gradient : client->gradients()) Fill(gradient, 0);
  const auto next = client->End();
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(shard_.calls.back().method, BulkMethod::kPushPull);
  EXPECT_EQ(shard_.calls.back().request.pulled_shard_step, shard_.shard_step - 1);
}

TEST_P(ModesTest, StopMeansCancelled) {
  const auto client = Create(ModeOptions());
  shard_.before = [this] {
    stop_.Raise();
    return absl::UnavailableError("connection refused");
  };
  client->Begin(0);
  ASSERT_TRUE(client->End().ok() || client->depth() == 1);
  EXPECT_EQ(client->Drain().ok(), client->depth() == 1) << "nothing is under way at depth 1";
  EXPECT_EQ(client->Pull().code(), absl::StatusCode::kCancelled);
}

TEST_P(ModesTest, FinalErrorsEndTheClient) {
  const auto client = Create(ModeOptions());
  ASSERT_TRUE(client->Pull().ok());
  shard_.before = [] { return absl::InvalidArgumentError("gradient is not finite"); };
  client->Begin(0);
  const auto result = client->End();
  if (client->depth() == 1) {
    EXPECT_EQ(result.status(), absl::InvalidArgumentError("gradient is not finite"));
  }
  EXPECT_EQ(client->Pull(), absl::InvalidArgumentError("gradient is not finite"));
  client->Begin(1);
  client->Offer(0);
  EXPECT_FALSE(client->End().ok() && client->Drain().ok());
}

TEST_P(ModesTest, PullBetweenStepsKeepsTheResultOfTheOneUnderWay) {
  const auto client = Create(ModeOptions());
  ASSERT_TRUE(client->Pull().ok());
  client->Begin(7);
  for (const auto& gradient : client->gradients()) Fill(gradient, 1);
  ASSERT_TRUE(client->End().ok());
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(Uniform(client->values()[0]), 0);
  const auto drained = client->Drain();
  ASSERT_TRUE(drained.ok()) << drained.status();
  ASSERT_EQ(drained->has_value(), client->depth() == 2);
  if (client->depth() == 2) {
    EXPECT_EQ((*drained)->step, 7);
  }
}

TEST_P(ModesTest, EndsWhileAStepIsUnderWay) {
  ShardedParameterClient::Options options = ModeOptions();
  options.retry.first_pause = absl::Hours(1);
  const auto client = Create(options);
  ASSERT_TRUE(client->Pull().ok());
  shard_.before = [] { return absl::UnavailableError("away"); };
  client->Begin(0);
  client->Offer(1);
  client->Offer(0);
}

// ---- Formats.

struct FormatCase {
  VariableFormats formats;
  size_t depth;
};

void PrintTo(const FormatCase& each, std::ostream* out) {
  *out << WireFormatName(each.formats.push) << " " << WireFormatName(each.formats.pull);
}

class FormatsTest : public ClientTestBase, public testing::TestWithParam<FormatCase> {};

INSTANTIATE_TEST_SUITE_P(
    Formats, FormatsTest,
    testing::Values(FormatCase{{WireFormat::kFloat32, WireFormat::kFloat16}, 1},
                    FormatCase{{WireFormat::kFloat16, WireFormat::kBfloat16}, 1},
                    FormatCase{{WireFormat::kBfloat16, WireFormat::kFloat32}, 2},
                    FormatCase{{WireFormat::kInt8, WireFormat::kFloat32}, 1},
                    FormatCase{{WireFormat::kTopK, WireFormat::kFloat16, 0.25f}, 1},
                    FormatCase{{WireFormat::kTopK, WireFormat::kFloat32, 0.25f}, 2}),
    [](const auto& info) {
      const FormatCase& each = info.param;
      std::string name = std::string(WireFormatName(each.formats.push)) + "_" +
                         std::string(WireFormatName(each.formats.pull));
      name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
      return name + "Depth" + std::to_string(each.depth);
    });

class FeedbackTest : public ClientTestBase, public testing::Test {};

// Error feedback delivers in later steps what a format loses, so the sum arrives.
TEST_P(FormatsTest, GradientsArriveInTheEnd) {
  ShardedParameterClient::Options options = FastOptions();
  options.depth = GetParam().depth;
  options.background = options.depth == 2;
  options.formats.assign(2, GetParam().formats);
  shard_.fragment_bytes = 99'999;  // cuts elements
  const auto client = Create(options);
  ASSERT_TRUE(client->Pull().ok());
  constexpr int kSteps = 5;
  for (int step = 0; step < kSteps; ++step) {
    client->Begin(step);
    for (const auto& gradient : client->gradients()) {
      // Multiples of 1/4, exact in the formats that are not coded with feedback.
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = step == 0 ? static_cast<float>(i % 4) / 4 : 0;
      }
    }
    ASSERT_TRUE(client->End().ok());
  }
  ASSERT_TRUE(client->Drain().ok());
  for (const auto& values : client->values()) {
    float worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::fabs(values[i] - (1 - static_cast<float>(i % 4) / 4)));
    }
    EXPECT_LE(worst, 1e-4);
  }
}

TEST_F(FeedbackTest, RepeatedMessageAppliesItsFeedbackOnce) {
  ShardedParameterClient::Options options = FastOptions();
  options.formats.assign(2, {WireFormat::kTopK, WireFormat::kFloat32, 0.5f});
  const auto client = Create(options);
  ASSERT_TRUE(client->Pull().ok());
  int calls = 0;
  shard_.before = [&] {
    return ++calls % 2 == 1 ? absl::UnavailableError("away") : absl::OkStatus();
  };
  for (int step = 0; step < 2; ++step) {
    client->Begin(step);
    for (const auto& gradient : client->gradients()) Fill(gradient, step == 0 ? 1 : 0);
    ASSERT_TRUE(client->End().ok());
  }
  EXPECT_EQ(Uniform(client->values()[0]), 0);
  EXPECT_EQ(Uniform(client->values()[1]), 0);
}

// ---- Requests.

class ClientTest : public ClientTestBase, public testing::Test {
 protected:
  ClientTest() : client_(Create(FastOptions())) {}

  absl::StatusOr<std::optional<PushResult>> Push(int64_t step) {
    client_->Begin(step);
    return client_->End();
  }
  void ExpectMalformed(const std::string& what) {
    const absl::Status status = client_->Pull();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0: malformed answer to Pull: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_THAT(client_->values()[1], Each(0)) << "the message's values were written";
  }

  std::unique_ptr<ShardedParameterClient> client_;
};

TEST_F(ClientTest, RequestsSayWhoAsksAndWhatIsKnown) {
  ASSERT_TRUE(client_->Pull().ok());
  ASSERT_TRUE(client_->Pull().ok());
  ASSERT_EQ(shard_.calls.size(), 4u);
  for (const FakeShard::Call& call : shard_.calls) {
    EXPECT_EQ(call.method, BulkMethod::kPull);
    EXPECT_EQ(call.request.role, v1::ROLE_WORKER);
    EXPECT_EQ(call.request.task_index, 3u);
    EXPECT_EQ(call.request.incarnation, 42u);
    EXPECT_EQ(call.request.placement_fingerprint, placement_.Fingerprint());
  }
  EXPECT_THAT(shard_.calls[0].request.known_versions, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(shard_.calls[2].request.known_versions, ElementsAre(1, 1, 1, 1, 1));
}

TEST_F(ClientTest, UnchangedBlocksAreNotSentAgain) {
  ASSERT_TRUE(client_->Pull().ok());
  size_t payload = 0;
  shard_.after = [&](BulkResponse*, std::string* bytes) {
    payload += bytes->size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(payload, 0u);
  EXPECT_EQ(Uniform(client_->values()[0]), 1);
  shard_.SetValues(2);
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Uniform(client_->values()[0]), 2);
}

TEST_F(ClientTest, PartsOfAPushShareItsSequence) {
  shard_.shard_step = 6;
  ASSERT_TRUE(client_->Pull().ok());
  shard_.calls.clear();
  ASSERT_TRUE(Push(17).ok());
  ASSERT_TRUE(Push(18).ok());
  ASSERT_EQ(shard_.calls.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const BulkRequest& push = shard_.calls[i].request;
    EXPECT_EQ(shard_.calls[i].method, BulkMethod::kPushPull);
    EXPECT_EQ(push.incarnation, 42u);
    EXPECT_EQ(push.placement_fingerprint, placement_.Fingerprint());
    EXPECT_EQ(push.sequence, i < 2 ? 1u : 2u);
    EXPECT_EQ(push.step, i < 2 ? 17 : 18);
    EXPECT_EQ(push.pulled_shard_step, i < 2 ? 6 : 7);
    EXPECT_EQ(push.last_part, i % 2 == 1);
  }
}

TEST_F(ClientTest, MessageIsSentWhenItsGradientsAreOffered) {
  ASSERT_TRUE(client_->Pull().ok());
  shard_.calls.clear();
  client_->Begin(0);
  client_->Offer(1);
  EXPECT_EQ(shard_.calls.size(), 0u) << "the first message has a part of w";
  client_->Offer(0);
  EXPECT_EQ(shard_.calls.size(), 2u);
  client_->Offer(0);
  ASSERT_TRUE(client_->End().ok());
  EXPECT_EQ(shard_.calls.size(), 2u);
}

TEST_F(ClientTest, StalenessCountsPushesOfOthers) {
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ((*Push(0))->staleness, 0);
  EXPECT_EQ((*Push(1))->staleness, 0) << "its own pushes do not count";
  shard_.shard_step += 3;
  EXPECT_EQ((*Push(2))->staleness, 3);
  EXPECT_EQ((*Push(3))->staleness, 0);
}

TEST_F(ClientTest, PushOfAnotherBetweenTheAnswersIsCounted) {
  ASSERT_TRUE(client_->Pull().ok());
  shard_.after = [this](auto*, auto*) {
    if (shard_.calls.size() == 3) ++shard_.shard_step;
    return absl::OkStatus();
  };
  ASSERT_TRUE(Push(0).ok());
  EXPECT_EQ((*Push(1))->staleness, 1) << "the first answer's values are without it";
}

TEST_F(ClientTest, ShardThatStartedOverIsPulledWholeWithLowerVersions) {
  ASSERT_TRUE(client_->Pull().ok());
  for (int i = 0; i < 5; ++i) shard_.SetValues(2);
  ASSERT_TRUE(client_->Pull().ok());
  shard_.StartOver(5);
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(Uniform(client_->values()[0]), 5);
}

TEST_F(ClientTest, ShardThatStartsOverWithinAPull) {
  for (const bool first_pull : {true, false}) {
    int calls = 0;
    shard_.after = [&](auto*, auto*) {
      if (++calls == 1) shard_.StartOver(first_pull ? 7 : 8);
      return absl::OkStatus();
    };
    ASSERT_TRUE(client_->Pull().ok());
    EXPECT_EQ(Uniform(client_->values()[0]), first_pull ? 7 : 8);
    EXPECT_EQ(Uniform(client_->values()[1]), first_pull ? 7 : 8);
  }
}

// ---- Errors.

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
  auto client = ShardedParameterClient::Create(FastOptions(), Variables(), placement_,
                                               Inline({&garbage}), &clock_, &stop_);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status status = (*client)->Pull();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0: malformed answer to Pull: "));
}

TEST_F(ClientTest, AnswerWithAForeignBlockIsMalformed) {
  shard_.after = [](BulkResponse* response, auto*) {
    response->blocks[0].block = 99;
    return absl::OkStatus();
  };
  ExpectMalformed("was not asked for");
}

TEST_F(ClientTest, AnswerInAnotherOrderIsMalformed) {
  shard_.after = [](BulkResponse* response, auto*) {
    std::swap(response->blocks[0], response->blocks[1]);
    return absl::OkStatus();
  };
  ExpectMalformed("is missing");
}

TEST_F(ClientTest, ShortPayloadIsMalformed) {
  shard_.after = [](auto*, std::string* payload) {
    payload->pop_back();
    return absl::OkStatus();
  };
  ExpectMalformed("shorter than its blocks");
}

TEST_F(ClientTest, LongPayloadIsMalformed) {
  shard_.after = [](auto*, std::string* payload) {
    payload->append("123");
    return absl::OkStatus();
  };
  ExpectMalformed("3 bytes beyond its blocks");
}

TEST_F(ClientTest, AnswerWithoutABlockThatIsNotKnownIsMalformed) {
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

// ---- Memory and creation.

TEST_F(ClientTest, WorksOnTheCallersMemory) {
  std::vector<float> w(2'000'000), b(10), dw(2'000'000, 3), db(10, 4);
  ShardedParameterClient::Options options = FastOptions();
  options.memory = ParameterMemory{{absl::MakeSpan(w), absl::MakeSpan(b)},
                                   {absl::MakeSpan(dw), absl::MakeSpan(db)}};
  const auto client = Create(options);
  EXPECT_EQ(client->values()[0].data(), w.data());
  EXPECT_EQ(client->gradients()[1].data(), db.data());
  ASSERT_TRUE(client->Pull().ok());
  EXPECT_EQ(w[5], 1);
  client->Begin(0);
  ASSERT_TRUE(client->End().ok());
  EXPECT_EQ(Uniform(w), -2);
  EXPECT_EQ(Uniform(b), -3);
}

TEST(ManyShardsTest, ResultsAreOverAllShards) {
  const std::vector<VariableSpec> variables = {{"a", Shape({2000}), {}}, {"b", Shape({3000}), {}}};
  const Placement placement = Placement::Compute(variables, 3);  // one shard has nothing
  std::vector<FakeShard> shards(3, FakeShard(&placement));
  ManualClock clock;
  StopSignal stop;
  auto client =
      ShardedParameterClient::Create(FastOptions(), variables, placement,
                                     Inline({&shards[0], &shards[1], &shards[2]}), &clock, &stop);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Pull().ok());
  for (FakeShard& shard : shards) {
    shard.shard_step += 3;
    shard.before = [&shard] {
      return shard.calls.size() == 2 ? absl::UnavailableError("away") : absl::OkStatus();
    };
  }
  const size_t with_partitions =
      std::count_if(shards.begin(), shards.end(), [](auto& shard) { return !shard.calls.empty(); });
  shards[placement.partition(0).shard].shard_step += 2;
  (*client)->Begin(0);
  for (const auto& gradient : (*client)->gradients()) Fill(gradient, 1);
  const auto result = (*client)->End();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)->staleness, 5);
  EXPECT_EQ((*result)->retries, static_cast<int64_t>(with_partitions));
  EXPECT_EQ(Uniform((*client)->values()[0]), 0);
  EXPECT_EQ(Uniform((*client)->values()[1]), 0);
}

class CreateTest : public testing::Test {
 protected:
  absl::Status Create(std::vector<VariableSpec> variables, size_t shards,
                      ShardedParameterClient::Options options = {}) {
    return ShardedParameterClient::Create(std::move(options), variables, placement_,
                                          Inline(std::vector<BulkHandler*>(shards, &shard_)),
                                          &clock_, &stop_)
        .status();
  }
  void ExpectInvalid(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
  const std::vector<VariableSpec> variables_ = {{"b", Shape({5}), {}}, {"a", Shape({4}), {}}};

  const Placement placement_ =
      Placement::Compute({{"a", Shape({4}), {}}, {"b", Shape({5}), {}}}, /*num_shards=*/1);
  FakeShard shard_{&placement_};
  ManualClock clock_;
  StopSignal stop_;
};

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
