#include "core/base/name_pattern.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(MatchesPatternTest, StarsStandForAnyCharacters) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("*", "dense_1/kernel"));
  EXPECT_TRUE(MatchesPattern("dense_1/*", "dense_1/kernel"));
  EXPECT_FALSE(MatchesPattern("dense_1/*", "dense_10/kernel"));
  EXPECT_TRUE(MatchesPattern("*/kernel", "dense_1/kernel"));
  EXPECT_FALSE(MatchesPattern("*/kernel", "dense_1/kernel_2"));
  EXPECT_TRUE(MatchesPattern("d*_1*/k*l", "dense_1/kernel"));
  EXPECT_TRUE(MatchesPattern("*ab", "aab")) << "the star has to take one more";
  EXPECT_TRUE(MatchesPattern("bias", "bias"));
  EXPECT_TRUE(MatchesPattern("bias**", "bias"));
  EXPECT_FALSE(MatchesPattern("bias", "bia"));
  EXPECT_FALSE(MatchesPattern("bia", "bias"));
  EXPECT_FALSE(MatchesPattern("", "bias"));
}

}  // namespace
}  // namespace keelson
