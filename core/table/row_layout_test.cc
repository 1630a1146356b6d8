#include "core/table/row_layout.h"

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RowLayoutTest, SlotsFollowTheValues) {
  const auto layout = RowLayout::Create(3, {{3, 0.1f}, {1, 2}});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->floats(), 7);
  EXPECT_EQ(layout->SlotOffset(0), 3);
  EXPECT_EQ(layout->SlotOffset(1), 6);
  EXPECT_EQ(layout->stride(), 48u);  // 16 + 28, to a multiple of 16
  std::vector<float> row(7, -1);
  layout->FillSlots(row.data());
  EXPECT_THAT(row, ElementsAre(-1, -1, -1, 0.1f, 0.1f, 0.1f, 2));
}

TEST(RowLayoutTest, TheSmallestAndTheLargestDim) {
  EXPECT_EQ(RowLayout::Create(1, {})->stride(), 32u);
  EXPECT_EQ(RowLayout::Create(1024, {})->stride(), 4112u);
}

TEST(RowLayoutTest, OtherDimsAndSlotsAreRefused) {
  for (const int64_t dim : {-1, 0, 1025}) {
    const absl::Status status = RowLayout::Create(dim, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("expected 1 to 1024"));
  }
  const absl::Status status = RowLayout::Create(8, {{4, 0}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("expected 1 or 8 floats, found 4"));
}

TEST(RowHeaderTest, PartsOfTheStateDoNotTouchEachOther) {
  RowHeader header = {1, 2, 3, RowHeader::kLive};
  header.set_changed(RowHeader::kChanged);
  EXPECT_EQ(header.changed(), RowHeader::kChanged);
  EXPECT_TRUE(header.live());
  EXPECT_FALSE(header.admitted());
  header.set_admitted(true);
  header.set_changed((1 << 14) + 5);
  EXPECT_EQ(header.changed(), 5);
  EXPECT_TRUE(header.admitted());
  header.set_admitted(false);
  EXPECT_FALSE(header.admitted());
  EXPECT_TRUE(header.live());
}

}  // namespace
}  // namespace keelson
