#include "core/checkpoint/tensor_slice.h"

#include <limits>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

const Shape kShape({10, 3});

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(TensorSliceTest, RowSliceIsExplicitInEveryDimension) {
  EXPECT_EQ(ToString(RowSlice(kShape, 5, 10)), "5,5:0,3");
  EXPECT_EQ(ToProto(RowSlice(kShape, 5, 10)).DebugString(),
            "extent {\n  start: 5\n  length: 5\n}\nextent {\n  length: 3\n}\n");
}

TEST(TensorSliceTest, FullExtentIsAnEmptyMessageAndComesBack) {
  const TensorSliceSpec slice{{{2, 4}, {}}};
  const v1::TensorSlice proto = ToProto(slice);
  EXPECT_EQ(absl::BytesToHexString(proto.SerializeAsString()), "0a04080210040a00");
  EXPECT_EQ(FromProto(proto).extents, slice.extents);
  EXPECT_EQ(ToString(slice), "2,4:-");
}

TEST(TensorSliceTest, ResolveMakesFullExplicit) {
  const auto resolved = ResolveSlice({{{2, 4}, {}}}, kShape);
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(ToString(*resolved), "2,4:0,3");
  EXPECT_EQ(SliceShape(*resolved), Shape({4, 3}));
}

TEST(TensorSliceTest, ResolveRefusesWhatLiesOutside) {
  const TensorSliceSpec outside[] = {
      {{{2, 4}}},
      {{{8, 3}, {}}},
      {{{-1, 3}, {}}},
      {{{0, -2}, {}}},
      {{{1, -1}, {}}},
      {{{11, 0}, {}}},
      {{{1, std::numeric_limits<int64_t>::max()}, {}}},
  };
  for (const TensorSliceSpec& slice : outside) {
    const absl::Status status = ResolveSlice(slice, kShape).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ToString(slice);
    EXPECT_THAT(Message(status), HasSubstr("shape [10, 3]"));
  }
}

TEST(TensorSliceTest, ExactCoverSorts) {
  std::vector<TensorSliceSpec> slices = {RowSlice(kShape, 4, 10), RowSlice(kShape, 0, 4)};
  EXPECT_TRUE(CheckExactCover(kShape, &slices).ok());
  EXPECT_EQ(ToString(slices[0]), "0,4:0,3");
}

TEST(TensorSliceTest, CoverInTwoDimensions) {
  std::vector<TensorSliceSpec> tiles = {{{{5, 5}, {0, 3}}}, {{{0, 5}, {1, 2}}}, {{{0, 5}, {0, 1}}}};
  EXPECT_TRUE(CheckExactCover(kShape, &tiles).ok());
}

TEST(TensorSliceTest, OverlapIsNamed) {
  std::vector<TensorSliceSpec> slices = {RowSlice(kShape, 3, 10), RowSlice(kShape, 0, 4)};
  EXPECT_EQ(Message(CheckExactCover(kShape, &slices)), "slices 0,4:0,3 and 3,7:0,3 overlap");
}

TEST(TensorSliceTest, OverlapBehindAShorterNeighbourIsFound) {
  std::vector<TensorSliceSpec> slices = {
      {{{0, 6}, {0, 1}}}, {{{0, 2}, {1, 2}}}, {{{4, 6}, {0, 3}}}};
  EXPECT_THAT(Message(CheckExactCover(kShape, &slices)), HasSubstr("overlap"));
}

TEST(TensorSliceTest, GapIsCounted) {
  std::vector<TensorSliceSpec> slices = {RowSlice(kShape, 0, 4), RowSlice(kShape, 5, 10)};
  EXPECT_EQ(Message(CheckExactCover(kShape, &slices)),
            "slices cover 27 of the 30 elements of shape [10, 3]");
}

TEST(TensorSliceTest, ScalarIsOneSlice) {
  std::vector<TensorSliceSpec> slices = {{}};
  EXPECT_TRUE(CheckExactCover(Shape(), &slices).ok());
  slices.push_back({});
  EXPECT_FALSE(CheckExactCover(Shape(), &slices).ok());
}

TEST(TensorShapeTest, ComesBack) {
  for (const Shape& shape : {Shape(), Shape({0}), Shape({10, 3})}) {
    const auto back = FromProto(ToProto(shape));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, shape);
  }
}

TEST(TensorShapeTest, RefusesNegativeAndHuge) {
  v1::TensorShape proto;
  proto.add_dim()->set_size(-1);
  EXPECT_EQ(FromProto(proto).status().code(), absl::StatusCode::kInvalidArgument);
  proto.mutable_dim(0)->set_size(int64_t{1} << 40);
  EXPECT_TRUE(FromProto(proto).ok());
  proto.add_dim()->set_size(int64_t{1} << 40);
  EXPECT_EQ(FromProto(proto).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
