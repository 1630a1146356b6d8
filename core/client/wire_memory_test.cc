// Tests ShardedParameterClients with wire memory, which a device encodes and decodes.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "core/client/plan/wire_plan.h"
#include "core/client/sharded_parameter_client_testing.h"
#include "core/client/wire_memory_testing.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const Mode kStrict = {"Strict", 1, false};
const Mode kBackground = {"StrictBackground", 1, true};
const Mode kDepth2 = {"Depth2", 2, true};

// "w" lies on both of two shards, "a" and "b" on one each.
std::vector<VariableSpec> ModelVariables() {
  return {{"w", Shape({1001, 9}), {}}, {"b", Shape({7}), {}}, {"a", Shape({3001}), {}}};
}

// One client over shards of its own, with arrays of elements or with wire memory.
class Side {
 public:
  Side(const Mode& mode, const VariableFormats& formats, bool bytes,
       std::vector<VariableSpec> variables = ModelVariables(), size_t shards = 2,
       int64_t block_elements = 501)
      : variables_(std::move(variables)),
        placement_(Placement::Compute(variables_, shards, block_elements)) {
    for (size_t s = 0; s < shards; ++s) shards_.push_back(std::make_unique<FakeShard>(&placement_));
    ShardedParameterClient::Options options = FastOptions();
    options.formats.assign(variables_.size(), formats);
    options.depth = mode.depth;
    options.background = mode.background;
    if (bytes) {
      wire_ =
          std::make_unique<HostWire>(*WireOf(placement_, variables_, options.formats), mode.depth);
      options.memory = ParameterMemory{{}, {}, wire_->memory()};
    }
    std::vector<BulkHandler*> services;
    for (const auto& shard : shards_) services.push_back(shard.get());
    auto client = ShardedParameterClient::Create(std::move(options), variables_, placement_,
                                                 Inline(std::move(services)), &clock_, &stop_);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    EXPECT_TRUE(client_->Pull().ok());
  }

  ShardedParameterClient& client() { return *client_; }
  FakeShard& shard(size_t s) { return *shards_[s]; }
  size_t num_shards() const { return shards_.size(); }
  StopSignal& stop() { return stop_; }

  // The last variable first.
  void OfferAll(float scale) {
    for (size_t v = variables_.size(); v-- > 0;) {
      const std::vector<float> gradient = Gradient(v, scale);
      if (wire_ != nullptr) {
        wire_->Encode(v, gradient, client_->gradient_set());
      } else {
        std::copy(gradient.begin(), gradient.end(), client_->gradients()[v].begin());
      }
      client_->Offer(v);
    }
  }
  absl::StatusOr<std::optional<PushResult>> Step(
      int64_t step, float scale, std::optional<Aggregation> aggregation = std::nullopt) {
    client_->Begin(step, aggregation);
    OfferAll(scale);
    return client_->End();
  }
  std::vector<float> Values(size_t variable) {
    if (wire_ != nullptr) return wire_->Values(variable, client_->value_set());
    const absl::Span<float> values = client_->values()[variable];
    return {values.begin(), values.end()};
  }
  // By shard. Which answers a step's values lack depends on when they came, and is left out.
  std::vector<std::vector<std::string>> Requests() const {
    std::vector<std::vector<std::string>> requests;
    for (const auto& shard : shards_) {
      auto& of_shard = requests.emplace_back();
      for (const FakeShard::Call& call : shard->calls)
        of_shard.push_back(WithoutUnseen(call.bytes));
    }
    return requests;
  }

 private:
  static std::string WithoutUnseen(const std::string& message) {
    ByteRope rope;
    rope.AppendOwned(message);
    ByteCursor cursor(rope);
    BulkRequest request;
    const absl::StatusOr<size_t> payload = DecodeBulkRequest(&cursor, &request);
    EXPECT_TRUE(payload.ok()) << payload.status();
    request.unseen_pushes = 0;
    return EncodeBulkRequest(request, *payload) + message.substr(message.size() - *payload);
  }
  std::vector<float> Gradient(size_t variable, float scale) const {
    std::vector<float> gradient(variables_[variable].shape.num_elements());
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = scale * std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(variable));
    }
    return gradient;
  }

  const std::vector<VariableSpec> variables_;
  const Placement placement_;
  std::vector<std::unique_ptr<FakeShard>> shards_;
  ManualClock clock_;
  StopSignal stop_;
  std::unique_ptr<HostWire> wire_;
  std::unique_ptr<ShardedParameterClient> client_;
};

// ---- The same as with arrays of elements.

class SameBytesTest : public testing::TestWithParam<std::tuple<WireFormat, WireFormat, Mode>> {
 protected:
  static void ExpectEqualValues(Side* elements, Side* bytes) {
    for (size_t v = 0; v < 3; ++v) {
      EXPECT_TRUE(elements->Values(v) == bytes->Values(v)) << "variable " << v;
    }
  }

  const VariableFormats formats_ = {std::get<0>(GetParam()), std::get<1>(GetParam()), 0.1f};
  const Mode mode_ = std::get<2>(GetParam());
};

INSTANTIATE_TEST_SUITE_P(
    Formats, SameBytesTest,
    testing::Combine(testing::Values(WireFormat::kFloat32, WireFormat::kFloat16,
                                     WireFormat::kBfloat16, WireFormat::kInt8, WireFormat::kTopK),
                     testing::Values(WireFormat::kFloat32, WireFormat::kFloat16,
                                     WireFormat::kBfloat16),
                     testing::Values(kStrict, kBackground, kDepth2)),
    [](const auto& info) {
      std::string name(WireFormatName(std::get<0>(info.param)));
      name += std::string(WireFormatName(std::get<1>(info.param))) + std::get<2>(info.param).name;
      std::erase(name, '_');
      return name;
    });

TEST_P(SameBytesTest, RequestsAndValuesOverSteps) {
  Side elements(mode_, formats_, false), bytes(mode_, formats_, true);
  EXPECT_TRUE(bytes.client().values().empty());
  EXPECT_TRUE(bytes.client().gradients().empty());
  ExpectEqualValues(&elements, &bytes);
  EXPECT_THAT(bytes.Values(1), Each(1.0f));
  for (int step = 0; step < 4; ++step) {
    const float scale = 0.01f * static_cast<float>(step + 1);
    const auto expected = elements.Step(step, scale);
    const auto found = bytes.Step(step, scale);
    ASSERT_TRUE(expected.ok() && found.ok()) << found.status();
    EXPECT_EQ(found->has_value(), expected->has_value());
    // At depth 2 parts of the next step's values may be there already.
    if (mode_.depth == 1) ExpectEqualValues(&elements, &bytes);
  }
  ASSERT_TRUE(elements.client().Drain().ok());
  ASSERT_TRUE(bytes.client().Drain().ok());
  ExpectEqualValues(&elements, &bytes);
  EXPECT_TRUE(elements.Requests() == bytes.Requests());
}

TEST_P(SameBytesTest, RepeatedRequests) {
  Side bytes(mode_, formats_, true);
  FakeShard& shard = bytes.shard(0);
  shard.calls.clear();
  // The first call is not executed; the second is, but its answer is lost.
  int calls = 0;
  shard.before = [&] { return calls++ == 0 ? absl::UnavailableError("away") : absl::OkStatus(); };
  shard.after = [&](auto*, auto*) {
    return calls == 2 ? absl::DeadlineExceededError("slow") : absl::OkStatus();
  };
  auto result = bytes.Step(0, 0.5f);
  ASSERT_TRUE(result.ok()) << result.status();
  if (!result->has_value()) result = bytes.client().Drain();
  ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
  EXPECT_EQ((*result)->retries, 2);
  ASSERT_EQ(shard.calls.size(), 3u);
  EXPECT_TRUE(shard.calls[0].bytes == shard.calls[1].bytes);
  EXPECT_TRUE(shard.calls[0].bytes == shard.calls[2].bytes);
  Side elements(mode_, formats_, false);
  ASSERT_TRUE(elements.Step(0, 0.5f).ok());
  ASSERT_TRUE(elements.client().Drain().ok());
  ExpectEqualValues(&elements, &bytes);
}

class WireModesTest : public testing::TestWithParam<Mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, WireModesTest, testing::Values(kStrict, kBackground, kDepth2),
                         [](const auto& info) { return info.param.name; });

TEST_P(WireModesTest, AggregatedStepsBringNothingBackAndTheNextPullDoes) {
  const VariableFormats formats = {WireFormat::kInt8, WireFormat::kFloat16};
  Side elements(GetParam(), formats, false), bytes(GetParam(), formats, true);
  for (Side* side : {&elements, &bytes}) {
    for (int64_t round = 0; round < 2; ++round) {
      const std::vector<float> before = side->Values(0);
      const auto result = side->Step(round, 0.3f, Aggregation{round, 1, 10});
      ASSERT_TRUE(result.ok() && result->has_value()) << result.status();
      EXPECT_TRUE(side->Values(0) == before);
      for (size_t s = 0; s < side->num_shards(); ++s) side->shard(s).CommitRound();
      ASSERT_TRUE(side->client().Pull().ok());
      EXPECT_FALSE(side->Values(0) == before);
    }
  }
  for (size_t v = 0; v < 3; ++v) EXPECT_TRUE(elements.Values(v) == bytes.Values(v));
  EXPECT_TRUE(elements.Requests() == bytes.Requests());
}

TEST_P(WireModesTest, ShardThatStartsOverIsPulledWhole) {
  // One shard, two messages.
  Side side(GetParam(), {}, true, {{"w", Shape({2000, 1000}), {}}}, 1,
            Placement::kDefaultBlockElements);
  int calls = 0;
  side.shard(0).before = [&] {
    if (++calls == 2) side.shard(0).StartOver(50);
    return absl::OkStatus();
  };
  ASSERT_TRUE(side.Step(0, 0).ok());
  ASSERT_TRUE(side.client().Drain().ok());
  const std::vector<float> values = side.Values(0);
  EXPECT_EQ(std::count(values.begin(), values.end(), 50.0f), 2'000'000);
}

// ---- NextValues.

class NextValuesTest : public testing::TestWithParam<Mode> {
 protected:
  static std::optional<int> Next(Side* side) {
    const auto next = side->client().NextValues();
    EXPECT_TRUE(next.ok()) << next.status();
    return next.ok() ? *next : std::nullopt;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, NextValuesTest, testing::Values(kStrict, kBackground),
                         [](const auto& info) { return info.param.name; });

TEST_P(NextValuesTest, TellsVariablesWhileOthersAreOnTheirWay) {
  Side side(GetParam(), {}, true, {{"a", Shape({3000}), {}}, {"b", Shape({2000}), {}}});
  // Variable a is on shard 0, b on shard 1, which is away for a while.
  std::atomic<bool> away = true;
  side.shard(1).before = [&away] {
    return away ? absl::UnavailableError("away") : absl::OkStatus();
  };
  for (int step = 0; step < 2; ++step) {
    away = true;
    side.client().Begin(step);
    side.client().Offer(1);  // NextValues sends the rest
    EXPECT_EQ(Next(&side), 0);
    EXPECT_TRUE(away);
    away = false;
    EXPECT_EQ(Next(&side), 1);
    EXPECT_EQ(Next(&side), std::nullopt);
    EXPECT_EQ(Next(&side), std::nullopt);
    const auto ended = side.client().End();
    ASSERT_TRUE(ended.ok() && ended->has_value()) << ended.status();
    EXPECT_EQ((*ended)->step, step);
  }
  EXPECT_EQ(side.shard(0).shard_step, 2);
}

TEST_P(NextValuesTest, AVariableIsToldAgainWhenItsServerWasSetUpAnew) {
  // One shard; b and a part of w are in the first message, the rest of w in the second.
  Side side(GetParam(), {}, true, {{"w", Shape({2000, 1000}), {}}, {"b", Shape({10}), {}}}, 1,
            Placement::kDefaultBlockElements);
  std::atomic<bool> away = true;
  int calls = 0;
  side.shard(0).before = [&] {
    if (++calls < 2) return absl::OkStatus();
    if (away) return absl::UnavailableError("away");
    if (side.shard(0).store_id == 100) side.shard(0).StartOver(50);
    return absl::OkStatus();
  };
  side.client().Begin(0);
  side.OfferAll(0);
  EXPECT_EQ(Next(&side), 1);
  EXPECT_THAT(side.Values(1), Each(1.0f));
  away = false;
  EXPECT_THAT((std::vector{Next(&side), Next(&side)}), UnorderedElementsAre(0, 1));
  EXPECT_EQ(Next(&side), std::nullopt);
  EXPECT_THAT(side.Values(1), Each(50.0f));
  ASSERT_TRUE(side.client().End().ok());
  EXPECT_EQ(side.Values(0).front(), 50.0f);
}

TEST_P(NextValuesTest, ThereAreNoneInAggregatedSteps) {
  Side side(GetParam(), {}, true);
  side.client().Begin(0, Aggregation{0, 1, 1});
  side.OfferAll(1);
  EXPECT_EQ(Next(&side), std::nullopt);
  ASSERT_TRUE(side.client().End().ok());
}

TEST_P(NextValuesTest, ThereAreNoneAtDepth2) {
  Side side(kDepth2, {}, true);
  for (int step = 0; step < 3; ++step) {
    side.client().Begin(step);
    side.OfferAll(1);
    EXPECT_EQ(Next(&side), std::nullopt);
    EXPECT_EQ(side.client().gradient_set(), step % 2);
    ASSERT_TRUE(side.client().End().ok());
  }
}

TEST_P(NextValuesTest, FinalErrorsEndIt) {
  Side side(GetParam(), {}, true);
  side.shard(1).before = [] { return absl::InvalidArgumentError("gradient is not finite"); };
  side.client().Begin(0);
  absl::Status status = absl::OkStatus();
  for (int i = 0; i <= 3 && status.ok(); ++i) status = side.client().NextValues().status();
  EXPECT_EQ(status, absl::InvalidArgumentError("gradient is not finite"));
  EXPECT_EQ(side.client().End().status(), status);
}

TEST_P(NextValuesTest, StopMeansCancelled) {
  Side side(GetParam(), {}, true);
  for (size_t s = 0; s < 2; ++s) {
    side.shard(s).before = [&side] {
      side.stop().Raise();
      return absl::UnavailableError("away");
    };
  }
  side.client().Begin(0);
  EXPECT_EQ(side.client().NextValues().status().code(), absl::StatusCode::kCancelled);
}

// ---- Memory that does not fit.

class WireMemoryCreateTest : public CreateTest {
 protected:
  absl::Status Create(WireMemory memory, size_t depth) {
    ShardedParameterClient::Options options;
    options.depth = depth;
    options.background = depth == 2;
    options.formats.assign(2, {WireFormat::kFloat16, WireFormat::kFloat16});
    options.memory = ParameterMemory{{}, {}, std::move(memory)};
    return CreateTest::Create(variables_, 1, std::move(options));
  }

  HostWire wire_{
      *WireOf(placement_, variables_,
              std::vector<VariableFormats>(2, {WireFormat::kFloat16, WireFormat::kFloat16})),
      2};
};

TEST_F(WireMemoryCreateTest, HasAsManySetsAsTheDepth) {
  WireMemory memory = wire_.memory();
  EXPECT_EQ(Create(memory, 2), absl::OkStatus());
  ExpectInvalid(Create(memory, 1), "memory: expected 1 sets of values and of gradients, found 2");
  memory.gradients.pop_back();
  ExpectInvalid(Create(memory, 2), "expected 2 sets of values and of gradients, found 2 and 1");
  memory.values.pop_back();
  EXPECT_EQ(Create(memory, 1), absl::OkStatus());
}

TEST_F(WireMemoryCreateTest, HasTheBytesOfThePlan) {
  WireMemory memory = wire_.memory();
  memory.values[1][0].remove_suffix(1);
  ExpectInvalid(Create(memory, 2), "memory: values of b: expected 10 bytes, found 9");
  memory = wire_.memory();
  memory.gradients[0][1].remove_suffix(4);
  ExpectInvalid(Create(memory, 2), "memory: gradients of a: expected 8 bytes, found 4");
  memory.gradients[0].pop_back();
  ExpectInvalid(Create(memory, 2), "memory: expected gradients of 2 variables, found 1");
}

}  // namespace
}  // namespace keelson
