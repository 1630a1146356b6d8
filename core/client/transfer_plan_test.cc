#include "core/client/transfer_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr int64_t kMaxElements = kBulkPayloadBytes / 4;

std::vector<VariableSpec> Variables() {
  return {{"a", Shape({3000, 1000}), {}}, {"b", Shape({10}), {}}, {"c", Shape({700, 1300}), {}}};
}

// All blocks that the messages name by their ranges, in order.
std::vector<std::pair<uint32_t, uint32_t>> Expand(const PlannedMessage& message) {
  std::vector<std::pair<uint32_t, uint32_t>> blocks;
  for (const v1::BlockRange& range : message.ranges) {
    for (uint32_t i = 0; i < range.num_blocks(); ++i) {
      blocks.emplace_back(range.partition(), range.first_block() + i);
    }
  }
  return blocks;
}

class TransferPlanTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Shards, TransferPlanTest, testing::Values(1, 2, 3, 7));

TEST_P(TransferPlanTest, EveryElementOnce) {
  const Placement placement = Placement::Compute(Variables(), GetParam());
  std::vector<std::vector<int>> seen;
  for (const VariableSpec& variable : placement.variables()) {
    seen.emplace_back(static_cast<size_t>(variable.shape.num_elements()), 0);
  }
  for (int s = 0; s < GetParam(); ++s) {
    for (const PlannedMessage& message : PlanTransfers(placement, s)) {
      for (const PlannedBlock& block : message.blocks) {
        EXPECT_EQ(placement.partition(static_cast<int>(block.partition)).shard, s);
        auto& counts = seen[static_cast<size_t>(block.variable)];
        ASSERT_LE(block.first_element + block.num_elements, static_cast<int64_t>(counts.size()));
        for (int64_t e = 0; e < block.num_elements; ++e) {
          ++counts[static_cast<size_t>(block.first_element + e)];
        }
      }
    }
  }
  for (const auto& counts : seen) {
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), static_cast<int64_t>(counts.size()));
  }
}

TEST_P(TransferPlanTest, MessagesAreBoundedAndTheirRangesNameTheirBlocks) {
  const Placement placement = Placement::Compute(Variables(), GetParam());
  for (int s = 0; s < GetParam(); ++s) {
    for (const PlannedMessage& message : PlanTransfers(placement, s)) {
      EXPECT_LE(message.num_elements, kMaxElements);
      std::vector<std::pair<uint32_t, uint32_t>> blocks;
      int64_t elements = 0;
      for (const PlannedBlock& block : message.blocks) {
        blocks.emplace_back(block.partition, block.block);
        elements += block.num_elements;
      }
      EXPECT_EQ(Expand(message), blocks);
      EXPECT_EQ(message.num_elements, elements);
    }
  }
}

TEST(TransferPlanSizeTest, SmallModelIsOneMessage) {
  const Placement placement = Placement::Compute(
      {{"w", Shape({784, 512}), {}}, {"b", Shape({512}), {}}, {"s", Shape({}), {}}}, 1);
  const std::vector<PlannedMessage> messages = PlanTransfers(placement, 0);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].ranges.size(), 3u) << "a range per partition";
  EXPECT_EQ(messages[0].num_elements, 784 * 512 + 512 + 1);
}

TEST(TransferPlanSizeTest, FullMessagesHaveFourDefaultBlocks) {
  const Placement placement = Placement::Compute({{"w", Shape({2000, 1000}), {}}}, 1);
  const std::vector<PlannedMessage> messages = PlanTransfers(placement, 0);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].blocks.size(), 4u);
  EXPECT_EQ(messages[1].ranges[0].first_block(), 4u);
}

TEST(TransferPlanSizeTest, BlockBeyondTheBoundTravelsAlone) {
  const Placement placement =
      Placement::Compute({{"w", Shape({3000, 1000}), {}}}, 1, /*block_elements=*/1'400'000);
  const std::vector<PlannedMessage> messages = PlanTransfers(placement, 0);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].num_elements, 1'400'000);
  EXPECT_EQ(messages[2].num_elements, 200'000);
}

TEST(TransferPlanSizeTest, ShardWithoutPartitionsHasNoMessages) {
  const Placement placement = Placement::Compute({{"s", Shape({}), {}}}, 2);
  EXPECT_EQ(PlanTransfers(placement, 0).size() + PlanTransfers(placement, 1).size(), 1u);
}

}  // namespace
}  // namespace keelson
