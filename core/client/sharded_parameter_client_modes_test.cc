// What holds of a client in every mode and format.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include "core/client/sharded_parameter_client_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

// Each element is `value`, or less by 1 at most `ahead` times.
void ExpectAhead(absl::Span<const float> values, float value, int ahead) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  EXPECT_LE(*greatest, value);
  EXPECT_GE(*least, value - static_cast<float>(ahead));
}

using ModesTest = ModesTestBase;

INSTANTIATE_TEST_SUITE_P(Modes, ModesTest, testing::ValuesIn(AllModes()), NameOfMode);

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

}  // namespace
}  // namespace keelson
