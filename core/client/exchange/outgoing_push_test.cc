#include "core/client/exchange/outgoing_push.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/wire/value_codec.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr WireFormat kFloat = WireFormat::kFloat32;

std::string BytesOf(absl::Span<const float> elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * 4);
}

// A message of whole variables, each one block.
PlannedMessage PlanOf(const std::vector<std::pair<int64_t, WireFormat>>& variables) {
  PlannedMessage plan;
  for (size_t v = 0; v < variables.size(); ++v) {
    PlannedBlock& block = plan.blocks.emplace_back();
    block.partition = static_cast<uint32_t>(v);
    block.variable = v;
    block.num_elements = variables[v].first;
    block.push = variables[v].second;
    block.top_k_count = 2;
    plan.ranges.push_back({block.partition, 0, 1, block.push, kFloat});
    plan.push_bytes += PushBytes(block);
  }
  return plan;
}

class OutgoingPushTest : public testing::Test {
 protected:
  void Make(const std::vector<std::pair<int64_t, WireFormat>>& variables) {
    plan_ = PlanOf(variables);
    for (const auto& [elements, format] : variables) {
      arrays_.emplace_back(elements);
      std::iota(arrays_.back().begin(), arrays_.back().end(), 1.0f);
      residuals_.emplace_back(elements);
    }
    for (auto& array : arrays_) spans_.push_back(absl::MakeSpan(array));
    BulkRequest request;
    request.incarnation = 42;
    push_ = std::make_unique<OutgoingPush>(&plan_, request, ParameterArrays{spans_, {}});
  }
  void Encode(uint64_t sequence = 1) {
    push_->Encode({sequence, /*step=*/7, /*pulled_shard_step=*/5, /*unseen_pushes=*/1, aggregation_,
                   /*last_part=*/true, rows_, absent_},
                  absl::MakeSpan(residuals_));
  }
  // What a server finds in the rope.
  std::string Payload(const ByteRope& rope) {
    ByteCursor cursor(rope);
    const auto bytes = DecodeBulkRequest(&cursor, &request_);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, cursor.remaining());
    return rope.ToString().substr(rope.size() - cursor.remaining());
  }

  PlannedMessage plan_;
  std::vector<std::vector<float>> arrays_;
  std::vector<std::vector<float>> residuals_;
  std::vector<absl::Span<float>> spans_;
  std::unique_ptr<OutgoingPush> push_;
  std::optional<Aggregation> aggregation_;
  std::shared_ptr<const RowMessage> rows_;
  std::vector<uint8_t> absent_;
  BulkRequest request_;
};

TEST_F(OutgoingPushTest, AbsentGradientsTakeNoBytes) {
  Make({{10, kFloat}, {4096, kFloat}, {20, WireFormat::kInt8}, {30, kFloat}});
  Encode();
  const std::string whole = Payload(push_->Rope());
  EXPECT_EQ(whole.size(), plan_.push_bytes);
  absent_ = {1, 1, 1, 0};
  Encode(2);
  EXPECT_EQ(Payload(push_->Rope()), BytesOf(arrays_[3]));
  EXPECT_EQ(push_->Rope().size(), push_->size());
  EXPECT_TRUE(request_.ranges[0].absent && request_.ranges[1].absent && request_.ranges[2].absent);
  EXPECT_FALSE(request_.ranges[3].absent);
  absent_.clear();
  residuals_[2].assign(20, 0);
  Encode(3);
  EXPECT_EQ(Payload(push_->Rope()), whole);
  EXPECT_EQ(request_.ranges, plan_.ranges);
}

TEST_F(OutgoingPushTest, LargeGradientsStayWhereTheyAre) {
  Make({{10, kFloat}, {4096, kFloat}, {20, kFloat}, {30, kFloat}});
  Encode();
  const ByteRope rope = push_->Rope();
  ASSERT_EQ(rope.fragments().size(), 4u) << "header, small, large, small ones together";
  EXPECT_EQ(rope.fragments()[2].data, reinterpret_cast<const uint8_t*>(arrays_[1].data()));
  EXPECT_EQ(rope.fragments()[3].size, 4u * 50);
  EXPECT_EQ(rope.size(), push_->size());
  EXPECT_EQ(Payload(rope),
            BytesOf(arrays_[0]) + BytesOf(arrays_[1]) + BytesOf(arrays_[2]) + BytesOf(arrays_[3]));
  EXPECT_EQ(request_.incarnation, 42u);
  EXPECT_EQ(request_.sequence, 1u);
  EXPECT_EQ(request_.step, 7);
  EXPECT_EQ(request_.pulled_shard_step, 5);
  EXPECT_EQ(request_.unseen_pushes, 1u);
  EXPECT_TRUE(request_.last_part);
  EXPECT_EQ(request_.ranges, plan_.ranges);
}

TEST_F(OutgoingPushTest, IsHeldUntilTheLastFragmentIsReleased) {
  Make({{10, kFloat}, {4096, kFloat}});
  Encode();
  EXPECT_FALSE(push_->held());
  ByteRope first = push_->Rope();
  {
    const ByteRope second = push_->Rope();
    EXPECT_EQ(first.ToString(), second.ToString());
  }
  EXPECT_TRUE(push_->held());
  std::vector<Fragment> fragments = first.TakeFragments();
  fragments.resize(1);
  EXPECT_TRUE(push_->held());
  fragments.clear();
  EXPECT_FALSE(push_->held());
}

TEST_F(OutgoingPushTest, OtherFormatsAreEncoded) {
  Make({{5000, WireFormat::kBfloat16}, {3, WireFormat::kFloat16}, {6, WireFormat::kTopK}});
  Encode();
  const std::string payload = Payload(push_->Rope());
  std::string expected(2 * 5003, '\0');
  auto* to = reinterpret_cast<uint8_t*>(expected.data());
  EncodeElements(WireFormat::kBfloat16, arrays_[0], to);
  EncodeElements(WireFormat::kFloat16, arrays_[1], to + 10000);
  std::vector<float> residual(6);
  EncodeTopK(arrays_[2], 2, absl::MakeSpan(residual), &expected);
  EXPECT_EQ(payload, expected);
  EXPECT_EQ(residuals_[2], residual);
}

TEST_F(OutgoingPushTest, FeedbackIsAddedToTheNextStep) {
  Make({{6, WireFormat::kTopK}});
  Encode(1);
  const std::string first = push_->Rope().ToString();
  EXPECT_EQ(push_->Rope().ToString(), first) << "encoded once";
  std::fill(arrays_[0].begin(), arrays_[0].end(), 0.0f);
  Encode(2);
  const std::string payload = Payload(push_->Rope());
  float kept[2];
  std::memcpy(kept, payload.data() + 12, 8);
  EXPECT_THAT(kept, testing::ElementsAre(3, 4)) << "6 and 5 went first";
}

TEST_F(OutgoingPushTest, BytesStayWhereTheyAreAndPaddingStaysThere) {
  // Two blocks of 3 and 1 elements with padding behind the first one, then one of 2.
  plan_ = PlanOf({{3, WireFormat::kFloat16}, {1, WireFormat::kFloat16}, {2, kFloat}});
  plan_.blocks[1].variable = 0;
  plan_.blocks[1].push_offset = 8;
  plan_.blocks[2].variable = 1;
  std::string first = "abcdef__gh__", second = "ijklmnop";
  const auto bytes = [](std::string* text) {
    return absl::MakeSpan(reinterpret_cast<uint8_t*>(text->data()), text->size());
  };
  const std::vector<absl::Span<uint8_t>> gradients = {bytes(&first), bytes(&second)};
  OutgoingPush push(&plan_, {}, {{}, gradients});
  push.Encode({}, {});
  const ByteRope rope = push.Rope();
  EXPECT_EQ(Payload(rope), "abcdefghijklmnop");
  ASSERT_EQ(rope.fragments().size(), 4u) << "header, the two blocks, the other variable";
  EXPECT_EQ(rope.fragments()[2].data, gradients[0].data() + 8);
  EXPECT_EQ(rope.fragments()[3].data, gradients[1].data());
}

TEST_F(OutgoingPushTest, BlocksWithoutPaddingBetweenThemAreOnePiece) {
  plan_ = PlanOf({{2, kFloat}, {1, kFloat}});
  plan_.blocks[1].variable = 0;
  plan_.blocks[1].push_offset = 8;
  std::string text = "abcdefghijkl";
  const std::vector<absl::Span<uint8_t>> gradients = {
      absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())};
  OutgoingPush push(&plan_, {}, {{}, gradients});
  push.Encode({}, {});
  const ByteRope rope = push.Rope();
  EXPECT_EQ(Payload(rope), text);
  EXPECT_EQ(rope.fragments().size(), 2u);
}

TEST_F(OutgoingPushTest, CarriesItsAggregationAndForgetsIt) {
  Make({{3, kFloat}});
  aggregation_ = Aggregation{12, 3, 100, 2};
  Encode(1);
  Payload(push_->Rope());
  EXPECT_EQ(request_.round, 12);
  EXPECT_EQ(request_.attempt, 3u);
  EXPECT_EQ(request_.weight, 100);
  EXPECT_EQ(request_.order, 2u);
  aggregation_.reset();
  Encode(2);
  Payload(push_->Rope());
  EXPECT_EQ(request_.round, 0);
  EXPECT_EQ(request_.attempt, 0u);
  EXPECT_EQ(request_.weight, 0);
  EXPECT_EQ(request_.order, 0u);
}

// As when a transport's threads do not run until the client is gone.
TEST(OutgoingPushOwnerTest, ARopeOutlivesThePushAndTheGradientsOwner) {
  constexpr int64_t kInPlace = OutgoingPush::kSmallestInPlace / sizeof(float);
  const PlannedMessage plan = PlanOf({{kInPlace, kFloat}, {3, kFloat}});
  auto owner = std::make_shared<std::vector<std::vector<float>>>();
  owner->emplace_back(kInPlace, 1.5f);
  owner->emplace_back(3, 2.5f);
  const std::weak_ptr<const void> watched = owner;
  std::vector<absl::Span<float>> spans;
  for (std::vector<float>& array : *owner) spans.push_back(absl::MakeSpan(array));
  auto push = std::make_unique<OutgoingPush>(&plan, BulkRequest(), ParameterArrays{spans, {}},
                                             std::move(owner));
  push->Encode(PushStamp(), {});
  ByteRope rope = push->Rope();
  const std::string sent = rope.ToString();
  push.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(rope.ToString(), sent);
  rope = ByteRope();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace keelson
