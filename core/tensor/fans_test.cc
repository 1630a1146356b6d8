#include "core/tensor/fans.h"

#include <cmath>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(FansTest, OfAMatrixAndOfAConvolution) {
  ASSERT_TRUE(FansOf(Shape({784, 10})).has_value());
  EXPECT_EQ(FansOf(Shape({784, 10}))->in, 784);
  EXPECT_EQ(FansOf(Shape({784, 10}))->out, 10);
  EXPECT_EQ(FansOf(Shape({5, 3, 4, 8}))->in, 60);
  EXPECT_EQ(FansOf(Shape({5, 3, 4, 8}))->out, 120);
}

TEST(FansTest, VectorsAndScalarsHaveNone) {
  EXPECT_FALSE(FansOf(Shape({10})).has_value());
  EXPECT_FALSE(FansOf(Shape()).has_value());
}

TEST(FansTest, UniformLimits) {
  const Initializer glorot = GlorotUniform({20, 30});
  EXPECT_EQ(glorot.kind, Initializer::Kind::kUniform);
  EXPECT_EQ(glorot.a, -glorot.b);
  EXPECT_EQ(glorot.b, static_cast<float>(std::sqrt(6.0 / 50)));
  const Initializer he = HeUniform({20, 30});
  EXPECT_EQ(he.kind, Initializer::Kind::kUniform);
  EXPECT_EQ(he.a, -he.b);
  EXPECT_EQ(he.b, static_cast<float>(std::sqrt(6.0 / 20)));
}

TEST(FansTest, NormalDeviations) {
  const Initializer glorot = GlorotNormal({20, 30});
  EXPECT_EQ(glorot.kind, Initializer::Kind::kNormal);
  EXPECT_EQ(glorot.a, 0);
  EXPECT_EQ(glorot.b, static_cast<float>(std::sqrt(2.0 / 50)));
  const Initializer he = HeNormal({20, 30});
  EXPECT_EQ(he.kind, Initializer::Kind::kNormal);
  EXPECT_EQ(he.a, 0);
  EXPECT_EQ(he.b, static_cast<float>(std::sqrt(2.0 / 20)));
}

}  // namespace
}  // namespace keelson
