#include "core/client/plan/wire_plan.h"

#include "core/client/plan/transfer_plan.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Odd extents, so that most blocks end beside a multiple of 4 bytes.
std::vector<VariableSpec> WireVariables() {
  return {{"w", Shape({4001, 7}), {}}, {"b", Shape({7}), {}}, {"a", Shape({3, 3001}), {}}};
}

Placement Place(int shards) {
  return Placement::Compute(WireVariables(), shards, /*blocks of*/ 1001);
}

TEST(WireOfTest, BlocksOfAWholeVariableArePadded) {
  const auto wire =
      WireOf(Placement::Compute({{"v", Shape({7}), {}}}, 1, 3), {{"v", Shape({7}), {}}},
             {{WireFormat::kFloat16, WireFormat::kBfloat16}});
  ASSERT_TRUE(wire.ok()) << wire.status();
  ASSERT_EQ(wire->size(), 1u);
  EXPECT_EQ((*wire)[0].values, WireFormat::kBfloat16);
  const WireLayout& gradient = (*wire)[0].gradient;
  EXPECT_EQ(gradient.format, WireFormat::kFloat16);
  EXPECT_EQ(gradient.num_elements, 7);
  EXPECT_EQ(gradient.bytes, 20u);
  EXPECT_THAT(gradient.blocks,
              ElementsAre(WireBlock{0, 3, 0}, WireBlock{3, 3, 8}, WireBlock{6, 1, 16}));
}

TEST(WireOfTest, WithoutFormatsEverythingIsFloat32) {
  const auto wire = WireOf(Place(1), WireVariables(), {});
  ASSERT_TRUE(wire.ok()) << wire.status();
  for (const VariableWire& variable : *wire) {
    EXPECT_EQ(variable.values, WireFormat::kFloat32);
    EXPECT_EQ(variable.gradient.format, WireFormat::kFloat32);
  }
}

class WireOfFormatsTest : public testing::TestWithParam<WireFormat> {};

INSTANTIATE_TEST_SUITE_P(Formats, WireOfFormatsTest,
                         testing::Values(WireFormat::kFloat32, WireFormat::kFloat16,
                                         WireFormat::kBfloat16, WireFormat::kInt8,
                                         WireFormat::kTopK));

TEST_P(WireOfFormatsTest, LayoutsAreWithoutGapsWhateverTheShards) {
  const VariableFormats formats = {GetParam(), WireFormat::kFloat32, 0.1f};
  for (const int shards : {1, 2, 3, 5}) {
    const auto wire =
        WireOf(Place(shards), WireVariables(), std::vector<VariableFormats>(3, formats));
    ASSERT_TRUE(wire.ok()) << wire.status();
    ASSERT_EQ(wire->size(), 3u);
    for (size_t v = 0; v < 3; ++v) {
      const WireLayout& gradient = (*wire)[v].gradient;
      int64_t elements = 0;
      size_t bytes = 0;
      for (const WireBlock& block : gradient.blocks) {
        EXPECT_EQ(block.first_element, elements);
        EXPECT_EQ(block.offset, bytes);
        EXPECT_EQ(block.top_k_count,
                  GetParam() == WireFormat::kTopK ? TopKCount(0.1f, block.num_elements) : 0);
        const size_t encoded = GetParam() == WireFormat::kTopK
                                   ? TopKBytes(block.top_k_count)
                                   : EncodedBytes(GetParam(), block.num_elements);
        elements += block.num_elements;
        bytes += (encoded + 3) / 4 * 4;
      }
      EXPECT_EQ(elements, WireVariables()[v].shape.num_elements());
      EXPECT_EQ(gradient.num_elements, elements);
      EXPECT_EQ(gradient.bytes, bytes);
    }
  }
}

// What a device writes is where the messages look for it.
TEST_P(WireOfFormatsTest, MessagesFindTheBlocksOfTheLayout) {
  const std::vector<VariableFormats> formats(3, {GetParam(), WireFormat::kFloat32, 0.1f});
  const Placement placement = Place(3);
  const auto positions = MatchVariables(WireVariables(), placement);
  ASSERT_TRUE(positions.ok()) << positions.status();
  const auto wire = WireOf(placement, WireVariables(), formats);
  ASSERT_TRUE(wire.ok()) << wire.status();
  size_t found = 0, expected = 0;
  for (const VariableWire& variable : *wire) expected += variable.gradient.blocks.size();
  for (size_t s = 0; s < 3; ++s) {
    for (const PlannedMessage& message : PlanTransfers(placement, s, *positions, formats)) {
      for (const PlannedBlock& block : message.blocks) {
        const WireBlock planned = {block.first_element, block.num_elements, block.push_offset,
                                   block.top_k_count};
        EXPECT_THAT((*wire)[block.variable].gradient.blocks, testing::Contains(planned));
        ++found;
      }
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(WireOfTest, OtherVariablesOrFormatsAreRefused) {
  const auto expect_invalid = [](const auto& result, const char* text) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(text));
  };
  std::vector<VariableSpec> fewer = WireVariables();
  fewer.erase(fewer.begin());
  expect_invalid(WireOf(Place(1), fewer, {}), "the model has no variable w");
  std::vector<VariableSpec> more = WireVariables();
  more.push_back({"x", Shape({1}), {}});
  expect_invalid(WireOf(Place(1), more, {}), "placement: expected 4 variables, found 3");
  expect_invalid(WireOf(Place(1), WireVariables(), std::vector<VariableFormats>(2)),
                 "formats: expected 3, found 2");
}

}  // namespace
}  // namespace keelson
