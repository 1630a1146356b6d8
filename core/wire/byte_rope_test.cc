#include "core/wire/byte_rope.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace keelson {
namespace {

void Count(void* user) { ++*static_cast<int*>(user); }

ByteRope RopeOf(std::initializer_list<absl::string_view> pieces) {
  ByteRope rope;
  for (const absl::string_view piece : pieces) rope.AppendBorrowed(piece.data(), piece.size());
  return rope;
}

std::string AsString(absl::Span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

TEST(PinTest, ReleasesOnce) {
  int released = 0;
  {
    Pin pin(Count, &released);
    Pin moved(std::move(pin));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(PinTest, AssignmentReleasesWhatWasHeld) {
  int first = 0, second = 0;
  {
    Pin pin(Count, &first);
    pin = Pin(Count, &second);
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 0);
  }
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(PinTest, EmptyReleasesNothing) {
  Pin pin;
  const Pin other(std::move(pin));
}

TEST(ByteRopeTest, StartsEmpty) {
  const ByteRope rope;
  EXPECT_TRUE(rope.empty());
  EXPECT_EQ(rope.size(), 0u);
  EXPECT_EQ(rope.ToString(), "");
}

TEST(ByteRopeTest, AppendsInOrder) {
  ByteRope rope;
  rope.AppendCopy("abc");
  rope.AppendOwned(std::string(100, 'x'));
  rope.AppendBorrowed("de", 2);
  EXPECT_EQ(rope.size(), 105u);
  EXPECT_EQ(rope.ToString(), "abc" + std::string(100, 'x') + "de");
  EXPECT_EQ(rope.fragments().size(), 3u);
}

TEST(ByteRopeTest, BorrowedBytesStayInPlace) {
  const std::string bytes = "here";
  ByteRope rope;
  rope.AppendBorrowed(bytes.data(), bytes.size());
  EXPECT_EQ(rope.fragments()[0].data, reinterpret_cast<const uint8_t*>(bytes.data()));
}

TEST(ByteRopeTest, OwnedBytesMoveWithTheRope) {
  ByteRope rope;
  {
    ByteRope first;
    first.AppendCopy("short");
    rope = std::move(first);
  }
  EXPECT_EQ(rope.ToString(), "short");
}

TEST(ByteRopeTest, EmptyFragmentsAreDroppedAndReleased) {
  int released = 0;
  ByteRope rope;
  rope.AppendCopy("");
  rope.Append({nullptr, 0, Pin(Count, &released)});
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(rope.fragments().empty());
}

TEST(ByteRopeTest, AppendingARopeTakesItsFragments) {
  int released = 0;
  {
    ByteRope rope = RopeOf({"ab"});
    ByteRope other = RopeOf({"cd", "ef"});
    other.Append({reinterpret_cast<const uint8_t*>("g"), 1, Pin(Count, &released)});
    rope.Append(std::move(other));
    EXPECT_EQ(rope.ToString(), "abcdefg");
    EXPECT_EQ(rope.size(), 7u);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(ByteRopeTest, TakeFragmentsLeavesItEmpty) {
  int released = 0;
  ByteRope rope = RopeOf({"ab"});
  rope.Append({reinterpret_cast<const uint8_t*>("c"), 1, Pin(Count, &released)});
  std::vector<Fragment> fragments = rope.TakeFragments();
  EXPECT_TRUE(rope.empty());
  EXPECT_TRUE(rope.fragments().empty());
  ASSERT_EQ(fragments.size(), 2u);
  EXPECT_EQ(released, 0);
  fragments.clear();
  EXPECT_EQ(released, 1);
}

TEST(ByteCursorTest, NextStopsAtFragments) {
  const ByteRope rope = RopeOf({"abc", "de"});
  ByteCursor cursor(rope);
  EXPECT_EQ(AsString(cursor.Next(2)), "ab");
  EXPECT_EQ(AsString(cursor.Next(2)), "c");
  EXPECT_EQ(cursor.remaining(), 2u);
  EXPECT_EQ(AsString(cursor.Next(0)), "");
  EXPECT_EQ(AsString(cursor.Next(100)), "de");
  EXPECT_EQ(cursor.remaining(), 0u);
  EXPECT_EQ(AsString(cursor.Next(1)), "");
}

TEST(ByteCursorTest, ReadsAcrossFragments) {
  const ByteRope rope = RopeOf({"a", "bc", "def"});
  ByteCursor cursor(rope);
  char bytes[4] = {};
  ASSERT_TRUE(cursor.Read(bytes, 4));
  EXPECT_EQ(std::string(bytes, 4), "abcd");
  EXPECT_EQ(cursor.remaining(), 2u);
}

TEST(ByteCursorTest, ReadBeyondTheEndConsumesNothing) {
  const ByteRope rope = RopeOf({"ab", "c"});
  ByteCursor cursor(rope);
  char bytes[4] = {};
  EXPECT_FALSE(cursor.Read(bytes, 4));
  EXPECT_EQ(cursor.remaining(), 3u);
  EXPECT_EQ(AsString(cursor.Next(4)), "ab");
}

TEST(ByteCursorTest, SkipsAcrossFragments) {
  const ByteRope rope = RopeOf({"a", "bc", "def"});
  ByteCursor cursor(rope);
  EXPECT_FALSE(cursor.Skip(7));
  EXPECT_TRUE(cursor.Skip(0));
  EXPECT_TRUE(cursor.Skip(4));
  EXPECT_EQ(AsString(cursor.Next(9)), "ef");
  EXPECT_TRUE(cursor.Skip(0));
  EXPECT_FALSE(cursor.Skip(1));
}

TEST(ByteCursorTest, CopiesAreIndependent) {
  const ByteRope rope = RopeOf({"ab", "cd"});
  ByteCursor cursor(rope);
  ByteCursor ahead = cursor;
  EXPECT_TRUE(ahead.Skip(3));
  EXPECT_EQ(cursor.remaining(), 4u);
  EXPECT_EQ(AsString(cursor.Next(9)), "ab");
}

TEST(ByteCursorTest, EmptyRope) {
  const ByteRope rope;
  ByteCursor cursor(rope);
  EXPECT_EQ(cursor.remaining(), 0u);
  EXPECT_TRUE(cursor.Next(1).empty());
  EXPECT_TRUE(cursor.Read(nullptr, 0));
}

}  // namespace
}  // namespace keelson
