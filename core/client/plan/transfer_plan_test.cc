#include "core/client/plan/transfer_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gmock/gmock.h"

namespace keelson {
namespace {

constexpr WireFormat kF32 = WireFormat::kFloat32;
constexpr WireFormat kBf16 = WireFormat::kBfloat16;

std::vector<VariableSpec> PlannedVariables() {
  return {{"a", Shape({3000, 1000}), {}}, {"b", Shape({10}), {}}, {"c", Shape({700, 1300}), {}}};
}

// The model has the variables in the placement's order.
std::vector<PlannedMessage> Plan(const Placement& placement, size_t shard,
                                 VariableFormats formats = {}) {
  std::vector<size_t> positions(placement.variables().size());
  std::iota(positions.begin(), positions.end(), 0);
  return PlanTransfers(placement, shard, positions,
                       std::vector<VariableFormats>(positions.size(), formats));
}

// All blocks that the messages name by their ranges, in order.
std::vector<std::pair<uint32_t, uint32_t>> Expand(const PlannedMessage& message) {
  std::vector<std::pair<uint32_t, uint32_t>> blocks;
  for (const BlockRange& range : message.ranges) {
    for (uint32_t i = 0; i < range.num_blocks; ++i) {
      blocks.emplace_back(range.partition, range.first_block + i);
    }
  }
  return blocks;
}

class TransferPlanTest : public testing::TestWithParam<size_t> {};

INSTANTIATE_TEST_SUITE_P(Shards, TransferPlanTest, testing::Values(1, 2, 3, 7));

TEST_P(TransferPlanTest, EveryElementOnce) {
  const Placement placement = Placement::Compute(PlannedVariables(), GetParam());
  std::vector<std::vector<int>> seen;
  for (const VariableSpec& variable : placement.variables()) {
    seen.emplace_back(variable.shape.num_elements(), 0);
  }
  for (size_t s = 0; s < GetParam(); ++s) {
    for (const PlannedMessage& message : Plan(placement, s)) {
      for (const PlannedBlock& block : message.blocks) {
        EXPECT_EQ(placement.partition(block.partition).shard, s);
        auto& counts = seen[block.variable];
        ASSERT_LE(block.first_element + block.num_elements, static_cast<int64_t>(counts.size()));
        for (int64_t e = 0; e < block.num_elements; ++e) {
          ++counts[block.first_element + e];
        }
      }
    }
  }
  for (const auto& counts : seen) {
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), static_cast<int64_t>(counts.size()));
  }
}

TEST_P(TransferPlanTest, MessagesAreBoundedAndTheirRangesNameTheirBlocks) {
  const Placement placement = Placement::Compute(PlannedVariables(), GetParam());
  for (size_t s = 0; s < GetParam(); ++s) {
    for (const PlannedMessage& message : Plan(placement, s)) {
      EXPECT_LE(message.push_bytes, kBulkPayloadBytes);
      EXPECT_LE(message.pull_bytes, kBulkPayloadBytes);
      std::vector<std::pair<uint32_t, uint32_t>> blocks;
      size_t elements = 0;
      for (const PlannedBlock& block : message.blocks) {
        blocks.emplace_back(block.partition, block.block);
        elements += block.num_elements;
      }
      EXPECT_EQ(Expand(message), blocks);
      EXPECT_EQ(message.push_bytes, elements * sizeof(float));
    }
  }
}

TEST(TransferPlanOrderTest, LastVariableOfTheModelComesFirst) {
  const Placement placement = Placement::Compute(PlannedVariables(), 1);
  // The model has them as c, a, b.
  const std::vector<size_t> positions = {1, 2, 0};
  const auto messages =
      PlanTransfers(placement, 0, positions, std::vector<VariableFormats>(positions.size()));
  std::vector<size_t> order;
  for (const PlannedMessage& message : messages) {
    for (const PlannedBlock& block : message.blocks) {
      if (order.empty() || order.back() != block.variable) order.push_back(block.variable);
    }
  }
  EXPECT_THAT(order, testing::ElementsAre(2, 1, 0));
  const PlannedBlock& first = messages[0].blocks[0];
  EXPECT_EQ(first.num_elements, 10) << "b";
  EXPECT_EQ(messages[0].blocks[1].first_element, 0) << "within a variable, forwards";
}

TEST(TransferPlanSizeTest, SmallModelIsOneMessage) {
  const Placement placement = Placement::Compute(
      {{"w", Shape({784, 512}), {}}, {"b", Shape({512}), {}}, {"s", Shape({}), {}}}, 1);
  const std::vector<PlannedMessage> messages = Plan(placement, 0);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].ranges.size(), 3u) << "a range per partition";
  EXPECT_EQ(messages[0].push_bytes, 4u * (784 * 512 + 512 + 1));
}

TEST(TransferPlanSizeTest, FullMessagesHaveFourDefaultBlocks) {
  const Placement placement = Placement::Compute({{"w", Shape({2000, 1000}), {}}}, 1);
  const std::vector<PlannedMessage> messages = Plan(placement, 0);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].blocks.size(), 4u);
  EXPECT_EQ(messages[1].ranges[0].first_block, 4u);
}

TEST(TransferPlanSizeTest, SmallVariablesFindRoomBesideFourDefaultBlocks) {
  const Placement placement =
      Placement::Compute({{"a", Shape({1024, 1024}), {}}, {"b", Shape({1024}), {}}}, 1);
  ASSERT_EQ(Plan(placement, 0).size(), 1u);
}

TEST(TransferPlanSizeTest, BytesOfTheWireCount) {
  const Placement placement = Placement::Compute({{"w", Shape({2000, 1000}), {}}}, 1);
  const std::vector<PlannedMessage> halves = Plan(placement, 0, {kBf16, kBf16});
  ASSERT_EQ(halves.size(), 1u);
  EXPECT_EQ(halves[0].push_bytes, 4'000'000u);
  EXPECT_EQ(halves[0].ranges[0], (BlockRange{0, 0, 8, kBf16, kBf16}));
  EXPECT_EQ(Plan(placement, 0, {kBf16, kF32}).size(), 2u) << "the larger direction decides";
  EXPECT_EQ(Plan(placement, 0, {kF32, kBf16}).size(), 2u);
}

TEST(TransferPlanSizeTest, TopKIsCountedPerBlock) {
  const Placement placement = Placement::Compute({{"w", Shape({300, 1000}), {}}}, 1);
  const std::vector<PlannedMessage> messages = Plan(placement, 0, {WireFormat::kTopK, kF32, 0.01f});
  ASSERT_EQ(messages.size(), 1u);
  ASSERT_EQ(messages[0].blocks.size(), 2u);
  EXPECT_EQ(messages[0].blocks[0].top_k_count, 2622);
  EXPECT_EQ(messages[0].blocks[1].top_k_count, 379);
  EXPECT_EQ(messages[0].push_bytes, TopKBytes(2622) + TopKBytes(379));
}

TEST(TransferPlanSizeTest, BlockBeyondTheBoundTravelsAlone) {
  const Placement placement =
      Placement::Compute({{"w", Shape({3000, 1000}), {}}}, 1, /*block_elements=*/1'400'000);
  const std::vector<PlannedMessage> messages = Plan(placement, 0);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].push_bytes, 4u * 1'400'000);
  EXPECT_EQ(messages[2].push_bytes, 4u * 200'000);
}

TEST(TransferPlanSizeTest, ShardWithoutPartitionsHasNoMessages) {
  const Placement placement = Placement::Compute({{"s", Shape({}), {}}}, 2);
  EXPECT_EQ(Plan(placement, 0).size() + Plan(placement, 1).size(), 1u);
}

}  // namespace
}  // namespace keelson
