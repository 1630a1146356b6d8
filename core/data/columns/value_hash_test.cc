#include "core/data/columns/value_hash.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace keelson {
namespace {

// Computed by other code from the description. Trained tables hold these ids, so a change of one
// is a mistake, whatever its reason.
TEST(ValueHashTest, GoldenValues) {
  EXPECT_EQ(FieldSalt("c1"), 0x08a27f07b54a6859u);
  EXPECT_EQ(HashValue("68fd1e64", FieldSalt("c1")), 0xc8090938e55e3fb0u);
  EXPECT_EQ(HashValue("68fd1e64", FieldSalt("c2")), 0xf750c6171aa68521u);
  EXPECT_EQ(HashValue("", FieldSalt("c1")), 0x3dad38d96cd8adb9u);
  EXPECT_EQ(HashValue("a", FieldSalt("c1")), 0x44d58cb387748ff0u);
  EXPECT_EQ(HashValue("a longer value", FieldSalt("c26")), 0x2c31f193634d9e97u);
}

TEST(ValueHashTest, ZerosAtTheEndCount) {
  const uint64_t salt = FieldSalt("field");
  EXPECT_NE(HashValue("a", salt), HashValue(std::string("a\0", 2), salt));
  EXPECT_NE(HashValue("", salt), HashValue(std::string(8, '\0'), salt));
}

TEST(ValueHashTest, ManyValuesUnderOneSalt) {
  const uint64_t salt = FieldSalt("field");
  const ValueHash hash(salt);
  std::string value;
  for (char c = 'a'; c <= 't'; value += c++) EXPECT_EQ(hash.Of(value), HashValue(value, salt));
}

TEST(ValueHashTest, AnyIdOrABucketOfAllThatThereAre) {
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(IdOfHash(kAll, 0), kAll);
  EXPECT_EQ(IdOfHash(kAll, 10), 9u);
  EXPECT_EQ(IdOfHash(0, 10), 0u);
  EXPECT_EQ(IdOfHash(kAll / 2, 10), 4u);
  EXPECT_EQ(IdOfHash(kAll, 1), 0u);
}

}  // namespace
}  // namespace keelson
