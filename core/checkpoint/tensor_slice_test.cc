#include "core/checkpoint/tensor_slice.h"

#include <array>
#include <limits>
#include <random>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
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

// Whether each element is in exactly one slice, found by counting.
bool CoversOnce(const std::vector<TensorSliceSpec>& slices) {
  std::array<int, 3 * 3 * 3> counts = {};
  for (const TensorSliceSpec& slice : slices) {
    for (int i = 0; i < 27; ++i) {
      const int64_t at[] = {i / 9, i / 3 % 3, i % 3};
      bool inside = true;
      for (size_t d = 0; d < 3; ++d) {
        inside &= at[d] >= slice.extents[d].start && at[d] < slice.extents[d].end();
      }
      counts[i] += inside ? 1 : 0;
    }
  }
  return absl::c_all_of(counts, [](int count) { return count == 1; });
}

// Cuts the slice at random places, in one of the first `dimensions` each time.
void Divide(const TensorSliceSpec& slice, size_t dimensions, std::minstd_rand* random,
            std::vector<TensorSliceSpec>* slices) {
  const size_t d = (*random)() % dimensions;
  const int64_t length = slice.extents[d].length;
  if ((*random)() % 3 == 0 || length < 2) return slices->push_back(slice);
  TensorSliceSpec low = slice, high = slice;
  low.extents[d].length = 1 + static_cast<int64_t>((*random)() % (length - 1));
  high.extents[d] = {low.extents[d].end(), length - low.extents[d].length};
  Divide(low, dimensions, random, slices);
  Divide(high, dimensions, random, slices);
}

TEST(TensorSliceTest, CoverIsWhatCountingFinds) {
  std::minstd_rand random(7);
  int covers = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<TensorSliceSpec> slices;
    Divide({{{0, 3}, {0, 3}, {0, 3}}}, 1 + i % 3, &random, &slices);
    // Half of them are spoilt by an extent that is another one, perhaps an empty one.
    if (i % 2 == 1) {
      const int64_t start = random() % 3;
      slices[random() % slices.size()].extents[random() % 3] = {
          start, static_cast<int64_t>(random() % (4 - start))};
    }
    absl::c_shuffle(slices, random);
    std::string text;
    for (const TensorSliceSpec& slice : slices) absl::StrAppend(&text, ToString(slice), " ");
    const bool expected = CoversOnce(slices);
    covers += expected ? 1 : 0;
    EXPECT_EQ(CheckExactCover(Shape({3, 3, 3}), &slices).ok(), expected) << text;
  }
  EXPECT_GT(covers, 1500);
  EXPECT_LT(covers, 2500);
}

// Comparing all pairs would take minutes.
TEST(TensorSliceTest, ManySlicesTakeLittleTime) {
  constexpr int64_t kColumns = 200'000;
  const Shape shape({2, kColumns});
  std::vector<TensorSliceSpec> slices;
  for (int64_t i = 0; i < kColumns; ++i) slices.push_back({{{0, 2}, {i, 1}}});
  EXPECT_TRUE(CheckExactCover(shape, &slices).ok());
  slices.back().extents[1].start -= 1;
  EXPECT_EQ(Message(CheckExactCover(shape, &slices)),
            "slices 0,2:199998,1 and 0,2:199998,1 overlap");
}

TEST(TensorSliceTest, ManySlicesInThreeDimensionsAreRefused) {
  constexpr int64_t kSide = 17;
  std::vector<TensorSliceSpec> slices;
  for (int64_t i = 0; i < kSide * kSide * kSide; ++i) {
    slices.push_back({{{i / (kSide * kSide), 1}, {i / kSide % kSide, 1}, {i % kSide, 1}}});
  }
  EXPECT_EQ(Message(CheckExactCover(Shape({kSide, kSide, kSide}), &slices)),
            "4913 slices are cut in 3 dimensions, expected at most 4096");
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
