// What a block adds up for a round, and what it remembers of workers.
#include <algorithm>
#include <optional>

#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"
#include "ps_server/units/block.h"

namespace keelson {
namespace {

using ::testing::Each;

constexpr int64_t kRoundElements = 64;

class BlockRoundsTest : public testing::Test {
 protected:
  BlockRoundsTest() { MakeBlock(); }

  // A block that has applied nothing.
  void MakeBlock() {
    block_.reset();
    sequences_.emplace();
    block_.emplace(NewContent(), /*unit=*/0, &*sequences_);
  }
  static BlockContentRef NewContent() {
    auto* content = new BlockContent(kRoundElements, 0);
    std::fill_n(content->values.data(), kRoundElements, 10.0f);
    return BlockContentRef(content);
  }
  StageResult Stage(uint64_t incarnation, uint64_t sequence, const RoundId& round, float weight,
                    float gradient) {
    const std::vector<float> elements(kRoundElements, gradient);
    ByteRope rope;
    rope.AppendBorrowed(elements.data(), elements.size() * sizeof(float));
    ByteCursor cursor(rope);
    const StageResult result =
        block_->Stage({incarnation, sequence}, round, weight, {WireFormat::kFloat32, &cursor});
    EXPECT_EQ(cursor.remaining(), 0u);
    return result;
  }

  const std::unique_ptr<Optimizer> sgd_ = *CreateOptimizer(OptimizerFromText("sgd {}"));
  std::optional<AppliedSequences> sequences_;
  std::optional<Block> block_;
};

TEST_F(BlockRoundsTest, CommitsTheWeightedMeanAsOneUpdate) {
  EXPECT_EQ(Stage(1, 1, {7, 1}, 1, 2), StageResult::kAdded);
  EXPECT_EQ(Stage(2, 1, {7, 1}, 3, 6), StageResult::kAdded);
  EXPECT_EQ(block_->Contributions({7, 1}), 2u);
  EXPECT_EQ(block_->Contributions({7, 2}), 0u);
  EXPECT_EQ(block_->Contributions({8, 1}), 0u);
  EXPECT_THAT(block_->Read()->values.span(), Each(10));
  block_->CommitRound(*sgd_, /*learning_rate=*/1);
  EXPECT_THAT(block_->Read()->values.span(), Each(5));
  EXPECT_EQ(block_->Read()->version, 2u);
  EXPECT_EQ(block_->Read()->updates, 1);
  EXPECT_EQ(block_->Contributions({7, 1}), 0u) << "the sum is gone";
}

TEST_F(BlockRoundsTest, ContentThatOthersHoldDoesNotChange) {
  const BlockContentRef held = block_->Read();
  Stage(1, 1, {0, 1}, 1, 2);
  block_->CommitRound(*sgd_, 1);
  EXPECT_THAT(held->values.span(), Each(10));
  EXPECT_THAT(block_->Read()->values.span(), Each(8));
}

TEST_F(BlockRoundsTest, EachPushIsAddedOnce) {
  EXPECT_EQ(Stage(1, 5, {0, 1}, 1, 2), StageResult::kAdded);
  EXPECT_EQ(Stage(1, 5, {0, 1}, 1, 2), StageResult::kDuplicate);
  EXPECT_EQ(Stage(1, 4, {0, 1}, 1, 2), StageResult::kDuplicate);
  EXPECT_EQ(block_->Contributions({0, 1}), 1u);
}

TEST_F(BlockRoundsTest, ANewerAttemptOrRoundDropsTheSum) {
  for (const RoundId newer : {RoundId{3, 2}, RoundId{4, 1}, RoundId{2, 2}}) {
    Stage(1, 1, {3, 1}, 1, 100);
    EXPECT_EQ(Stage(2, 1, newer, 1, 1), StageResult::kAdded);
    EXPECT_EQ(block_->Contributions({3, 1}), 0u);
    EXPECT_EQ(block_->Contributions(newer), 1u);
    EXPECT_EQ(Stage(3, 1, {3, 1}, 1, 100), StageResult::kOutdated);
    EXPECT_EQ(Stage(3, 1, newer, 1, 3), StageResult::kAdded) << "the refusal did not count";
    block_->CommitRound(*sgd_, 1);
    EXPECT_THAT(block_->Read()->values.span(), Each(8));
    MakeBlock();
  }
}

TEST_F(BlockRoundsTest, OrdinaryPushesAndStagedOnesShareTheirSequence) {
  EXPECT_TRUE(ApplyTo(&*block_, *sgd_, {1, 5, 1}, std::vector<float>(kRoundElements, 1)));
  EXPECT_EQ(Stage(1, 5, {0, 1}, 1, 2), StageResult::kDuplicate);
  EXPECT_EQ(Stage(1, 6, {0, 1}, 1, 2), StageResult::kAdded);
  EXPECT_FALSE(ApplyTo(&*block_, *sgd_, {1, 6, 1}, std::vector<float>(kRoundElements, 1)));
}

// ---- Contents that workers were given.

class GivenContentTest : public BlockRoundsTest {
 protected:
  // Adds what the values have moved since they were given: decay 0 makes the factor 1 / |g|.
  bool Push(uint64_t incarnation, uint64_t sequence, BlockContentRef* after = nullptr) {
    const std::vector<float> elements(kRoundElements, 1.0f);
    ByteRope rope;
    rope.AppendBorrowed(elements.data(), elements.size() * sizeof(float));
    ByteCursor cursor(rope);
    return compensated_.Apply(*optimizer_, {incarnation, sequence, /*learning_rate=*/1},
                              {WireFormat::kFloat32, &cursor}, after);
  }
  float Value() { return compensated_.Read()->values.data()[17]; }

  static BlockContentRef ContentWithSlot() {
    auto* content = new BlockContent(kRoundElements, 1);
    std::fill_n(content->values.data(), kRoundElements, 10.0f);
    return BlockContentRef(content);
  }
  static std::unique_ptr<Optimizer> Compensating() {
    v1::StaleGradientConfig stale;
    stale.mutable_delay_compensation()->set_lambda(1);
    stale.mutable_delay_compensation()->set_decay(0);
    stale.mutable_delay_compensation()->set_epsilon(1e-30f);
    return *CreateOptimizer(OptimizerFromText("sgd {}"), stale);
  }

  const std::unique_ptr<Optimizer> optimizer_ = Compensating();
  AppliedSequences sequences_;
  Block compensated_{ContentWithSlot(), /*unit=*/0, &sequences_};
};

TEST_F(GivenContentTest, CorrectsByWhatMovedSinceItWasGiven) {
  compensated_.Give(1);
  ASSERT_TRUE(Push(2, 1));  // not known: plain
  EXPECT_EQ(Value(), 9);
  ASSERT_TRUE(Push(1, 1));  // 1 + (9 - 10) = 0
  EXPECT_EQ(Value(), 9);
  ASSERT_TRUE(Push(2, 2));
  ASSERT_TRUE(Push(1, 2));  // still as of Give: 1 + (8 - 10) = -1
  EXPECT_EQ(Value(), 9);
}

TEST_F(GivenContentTest, AnAnswerToAPushIsGivenToo) {
  BlockContentRef after;
  ASSERT_TRUE(Push(1, 1, &after));
  ASSERT_TRUE(Push(2, 1));
  EXPECT_EQ(Value(), 8);
  ASSERT_TRUE(Push(1, 2, &after));  // 1 + (8 - 9)
  EXPECT_EQ(Value(), 8);
  ASSERT_TRUE(Push(1, 3));  // nothing has moved
  EXPECT_EQ(Value(), 7);
}

TEST_F(GivenContentTest, ForgottenIsNotKnown) {
  compensated_.Give(1);
  ASSERT_TRUE(Push(2, 1));
  compensated_.Keep(std::vector<uint64_t>{2});
  ASSERT_TRUE(Push(1, 1));
  EXPECT_EQ(Value(), 8);
}

TEST_F(GivenContentTest, OnlyTheNewestIsHeld) {
  const BlockContent* first = &*compensated_.Give(1);
  ASSERT_TRUE(Push(2, 1));
  EXPECT_NE(&*compensated_.Give(1), first);
  compensated_.Keep(std::vector<uint64_t>{2});
  const BlockContent* sole = &*compensated_.Read();
  ASSERT_TRUE(Push(2, 2));
  EXPECT_EQ(&*compensated_.Read(), sole) << "nobody holds it any more, so it is updated in place";
}

}  // namespace
}  // namespace keelson
