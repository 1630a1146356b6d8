#include "core/rpc/byte_buffer.h"

#include <grpcpp/support/slice.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

std::string Contents(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string out;
  for (const grpc::Slice& slice : slices) {
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return out;
}

void CountRelease(void* user) { ++*static_cast<int*>(user); }

TEST(MakeByteBufferTest, SendsLargeFragmentsFromWhereTheyAre) {
  const std::string large(100000, 'x');
  int released = 0;
  {
    ByteRope rope;
    rope.Append({reinterpret_cast<const uint8_t*>(large.data()), large.size(),
                 Pin(CountRelease, &released)});
    const grpc::ByteBuffer buffer = MakeByteBuffer(std::move(rope));
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(buffer.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 1u);
    EXPECT_EQ(slices[0].begin(), reinterpret_cast<const uint8_t*>(large.data()));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(MakeByteBufferTest, CopiesSmallFragmentsTogetherAndReleasesThemAtOnce) {
  int released = 0;
  const std::string small = "small", large(20000, 'y');
  ByteRope rope;
  rope.Append(
      {reinterpret_cast<const uint8_t*>(small.data()), small.size(), Pin(CountRelease, &released)});
  rope.AppendCopy("header");
  rope.AppendBorrowed(large.data(), large.size());
  rope.AppendCopy("tail");
  const grpc::ByteBuffer buffer = MakeByteBuffer(std::move(rope));
  EXPECT_EQ(released, 1);
  EXPECT_EQ(Contents(buffer), small + "header" + large + "tail");
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  EXPECT_EQ(slices.size(), 3u);
}

TEST(MakeByteBufferTest, AnEmptyRopeIsAnEmptyMessage) {
  const grpc::ByteBuffer buffer = MakeByteBuffer(ByteRope());
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
}

TEST(TakeByteBufferTest, KeepsTheSlicesWhereTheyAreUntilTheRopeGoes) {
  int released = 0;
  std::string a(30000, 'a'), b(30000, 'b');
  grpc::Slice slices[] = {grpc::Slice(a.data(), a.size(), CountRelease, &released),
                          grpc::Slice(b.data(), b.size(), CountRelease, &released)};
  grpc::ByteBuffer buffer(slices, 2);
  slices[0] = grpc::Slice();
  slices[1] = grpc::Slice();
  {
    const ByteRope rope = TakeByteBuffer(&buffer);
    ASSERT_EQ(rope.fragments().size(), 2u);
    EXPECT_EQ(rope.fragments()[1].data, reinterpret_cast<const uint8_t*>(b.data()));
    EXPECT_EQ(rope.ToString(), a + b);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 2);
}

TEST(TakeByteBufferTest, NothingIsNothing) {
  grpc::ByteBuffer buffer;
  EXPECT_TRUE(TakeByteBuffer(&buffer).empty());
}

}  // namespace
}  // namespace keelson
