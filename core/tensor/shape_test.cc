#include "core/tensor/shape.h"

#include "core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ShapeTest, CountsElementsAndRows) {
  const Shape matrix({10, 3});
  EXPECT_EQ(matrix.num_elements(), 30);
  EXPECT_EQ(matrix.rows(), 10);
  EXPECT_EQ(matrix.row_elements(), 3);
  EXPECT_EQ(matrix.ToString(), "[10, 3]");
}

TEST(ShapeTest, ScalarHasOneRow) {
  const Shape scalar;
  EXPECT_EQ(scalar.num_elements(), 1);
  EXPECT_EQ(scalar.rows(), 1);
  EXPECT_EQ(scalar.row_elements(), 1);
  EXPECT_EQ(scalar.ToString(), "[]");
}

TEST(ShapeTest, EmptyDimension) {
  EXPECT_EQ(Shape({0, 5}).num_elements(), 0);
  EXPECT_EQ(Shape({0, 5}).row_elements(), 0);
}

TEST(TensorTest, IsZeroAndAligned) {
  const Tensor tensor(Shape({3, 5}));
  EXPECT_EQ(tensor.size(), 15);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % AlignedBuffer::kAlignment, 0u);
  for (const float value : tensor.span()) EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace keelson
