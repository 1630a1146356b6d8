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

TEST(MapNameTest, StarsTakeWhatTheyStoodFor) {
  EXPECT_EQ(MapName("trunk/*", "model/encoder/*", "trunk/kernel"), "model/encoder/kernel");
  EXPECT_EQ(MapName("*", "model/*:0", "bias"), "model/bias:0");
  EXPECT_EQ(MapName("*/kernel", "layers.*.weight", "dense_1/kernel"), "layers.dense_1.weight");
  EXPECT_EQ(MapName("block_*/*", "h.*.*.w", "block_3/dense_1"), "h.3.dense_1.w");
  EXPECT_EQ(MapName("head/kernel", "classifier", "head/kernel"), "classifier");
  EXPECT_EQ(MapName("head_*", "classifier", "head_2"), "classifier") << "one for all";
}

TEST(MapNameTest, AStarTakesLittleTheLastOneTheRest) {
  EXPECT_EQ(MapName("*/*", "*|*", "a/b/c"), "a|b/c");
  EXPECT_EQ(MapName("*ab*ab", "*|*", "abababab"), "|abab");
  EXPECT_EQ(MapName("*ab", "*", "abab"), "ab");
  EXPECT_EQ(MapName("**", "*|*", "abc"), "|abc");
}

TEST(MapNameTest, AnotherNameHasNone) {
  EXPECT_EQ(MapName("trunk/*", "*", "head/kernel"), std::nullopt);
  EXPECT_EQ(MapName("ab*ba", "*", "aba"), std::nullopt) << "no character counts twice";
}

}  // namespace
}  // namespace keelson
