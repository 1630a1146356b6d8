#include "core/checkpoint/slice_runs.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

// Positions in the tensor of the slice's elements, found by looking at every element.
std::vector<int64_t> Positions(const TensorSliceSpec& slice, const Shape& shape) {
  std::vector<int64_t> positions;
  for (int64_t position = 0; position < shape.num_elements(); ++position) {
    int64_t rest = position;
    bool inside = true;
    for (size_t d = shape.rank(); d-- > 0;) {
      const TensorSliceSpec::Extent& extent = slice.extents[d];
      const int64_t index = rest % shape.dim(d);
      inside = inside && extent.start <= index && index < extent.end();
      rest /= shape.dim(d);
    }
    if (inside) positions.push_back(position);
  }
  return positions;
}

void ExpectRunsAreExact(const TensorSliceSpec& slice, const Shape& shape) {
  SCOPED_TRACE(ToString(slice) + " of " + shape.ToString());
  const SliceRuns runs(slice, shape);
  const std::vector<int64_t> positions = Positions(slice, shape);
  for (size_t i = 0; i < positions.size(); ++i) {
    ASSERT_EQ(runs.InTensor(static_cast<int64_t>(i)), positions[i]);
  }
  for (int64_t begin = 0; begin < shape.num_elements(); ++begin) {
    for (int64_t end = begin + 1; end <= shape.num_elements(); ++end) {
      std::vector<int64_t> expected;
      for (size_t i = 0; i < positions.size(); ++i) {
        if (begin <= positions[i] && positions[i] < end)
          expected.push_back(static_cast<int64_t>(i));
      }
      const SliceRuns::Range range = runs.Within(begin, end);
      ASSERT_EQ(range.empty(), expected.empty()) << begin << " " << end;
      if (!range.empty()) {
        ASSERT_EQ(range.begin, expected.front());
        ASSERT_EQ(range.end, expected.back() + 1);
      }
      std::vector<int64_t> visited;
      runs.ForEach(begin, end, [&](const SliceRuns::Run& run) {
        for (int64_t i = 0; i < run.length; ++i) {
          ASSERT_EQ(positions[run.in_slice + i], run.in_tensor + i);
          visited.push_back(run.in_slice + i);
        }
      });
      ASSERT_EQ(visited, expected) << begin << " " << end;
    }
  }
}

TEST(SliceRunsTest, EverySliceOfAnArrayWithTwoDimensions) {
  const Shape shape({3, 4});
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t rows = 1; rows <= 3 - row; ++rows) {
      for (int64_t column = 0; column < 4; ++column) {
        for (int64_t columns = 1; columns <= 4 - column; ++columns) {
          ExpectRunsAreExact({{{row, rows}, {column, columns}}}, shape);
        }
      }
    }
  }
}

TEST(SliceRunsTest, BoxesOfMoreDimensions) {
  ExpectRunsAreExact({{{0, 2}, {1, 1}, {0, 3}}}, Shape({2, 3, 3}));
  ExpectRunsAreExact({{{1, 1}, {0, 2}, {1, 2}}}, Shape({2, 3, 3}));
  ExpectRunsAreExact({{{0, 2}, {0, 2}, {0, 2}, {1, 1}}}, Shape({2, 2, 2, 2}));
  ExpectRunsAreExact({{{0, 1}, {2, 3}}}, Shape({1, 7}));
}

TEST(SliceRunsTest, RowsAndScalarsAreOneRun) {
  EXPECT_TRUE(SliceRuns({{{2, 3}, {0, 4}}}, Shape({9, 4})).IsOneRun({0, 12}));
  const SliceRuns scalar({}, Shape());
  EXPECT_TRUE(scalar.IsOneRun(scalar.Within(0, 1)));
  const SliceRuns columns({{{0, 9}, {1, 2}}}, Shape({9, 4}));
  EXPECT_TRUE(columns.IsOneRun({2, 4}));
  EXPECT_FALSE(columns.IsOneRun({1, 3}));
}

TEST(SliceRunsTest, EmptySlicesHaveNone) {
  for (const TensorSliceSpec& slice : {TensorSliceSpec{{{0, 0}, {0, 4}}}, {{{0, 3}, {2, 0}}}}) {
    EXPECT_TRUE(SliceRuns(slice, Shape({3, 4})).Within(0, 12).empty());
  }
}

// Position by search, not by counting: 2^40 runs take no longer than one.
TEST(SliceRunsTest, ARunFarBehindIsFound) {
  const int64_t rows = int64_t{1} << 40;
  const SliceRuns runs({{{0, rows}, {1, 1}}}, Shape({rows, 2}));
  const SliceRuns::Range range = runs.Within(2 * rows - 1, 2 * rows);
  EXPECT_EQ(range.begin, rows - 1);
  EXPECT_EQ(range.end, rows);
}

}  // namespace
}  // namespace keelson
