#include "core/wire/row_codec.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

constexpr WireFormat kFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                   WireFormat::kBfloat16, WireFormat::kInt8};

std::vector<float> Matrix(int64_t rows, int64_t dim) {
  std::vector<float> matrix(rows * dim);
  for (size_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = std::ldexp(std::sin(static_cast<float>(i + 1)), static_cast<int>(i % 9));
  }
  return matrix;
}

std::string Encoded(WireFormat format, const std::vector<float>& matrix, int64_t dim) {
  std::string bytes(matrix.size() / dim * RowBytes(format, dim), 'x');
  EncodeRows(format, absl::MakeConstSpan(matrix), dim, reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

ByteRope Pieces(const std::string& bytes, size_t size) {
  ByteRope rope;
  for (size_t i = 0; i < bytes.size(); i += size) rope.AppendCopy(bytes.substr(i, size));
  return rope;
}

TEST(RowCodecTest, RowBytes) {
  EXPECT_EQ(RowBytes(WireFormat::kFloat32, 16), 64u);
  EXPECT_EQ(RowBytes(WireFormat::kFloat16, 16), 32u);
  EXPECT_EQ(RowBytes(WireFormat::kBfloat16, 1), 2u);
  EXPECT_EQ(RowBytes(WireFormat::kInt8, 1024), 1028u);
  EXPECT_FALSE(IsRowFormat(WireFormat::kTopK));
}

TEST(RowCodecTest, ElementsAreThoseOfBlocks) {
  const std::vector<float> matrix = Matrix(5, 7);
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    std::string expected(5 * RowBytes(format, 7), 'x');
    EncodeElements(format, matrix, reinterpret_cast<uint8_t*>(expected.data()));
    EXPECT_EQ(Encoded(format, matrix, 7), expected);
  }
}

TEST(RowCodecTest, EachRowHasItsScale) {
  std::vector<float> decoded(4);
  const std::string bytes = Encoded(WireFormat::kInt8, {127, -64, 0.127f, 0.001f}, 2);
  ASSERT_EQ(bytes.size(), 12u);
  DecodeRows(WireFormat::kInt8, reinterpret_cast<const uint8_t*>(bytes.data()), 2,
             absl::MakeSpan(decoded));
  EXPECT_THAT(decoded, ElementsAre(127, -64, 0.127f, 0.001f));
  EXPECT_EQ(bytes.substr(4, 2), "\x7f\xc0");
  EXPECT_EQ(bytes.substr(10, 2), "\x7f\x01");
}

TEST(RowCodecTest, RowsFromAnywhereGiveTheSameBytesOnEveryInstructionSet) {
  for (const int64_t dim : {1, 3, 16, 33, 1024}) {
    const std::vector<float> matrix = Matrix(9, dim);
    std::vector<const float*> rows;
    for (int64_t r = 0; r < 9; ++r) rows.push_back(matrix.data() + r * dim);
    for (const WireFormat format : kFormats) {
      const std::string expected = Encoded(format, matrix, dim);
      ForEachInstructionSet([&] {
        std::string bytes(expected.size(), 'x');
        EncodeRows(format, rows, dim, reinterpret_cast<uint8_t*>(bytes.data()));
        EXPECT_EQ(bytes, expected);
      });
    }
  }
}

TEST(RowCodecTest, TakesRowsHoweverTheyAreCut) {
  const std::vector<float> matrix = Matrix(9, 5);
  for (const WireFormat format : kFormats) {
    const std::string bytes = Encoded(format, matrix, 5);
    std::vector<float> expected(matrix.size());
    DecodeRows(format, reinterpret_cast<const uint8_t*>(bytes.data()), 5, absl::MakeSpan(expected));
    for (size_t size = 1; size <= bytes.size(); ++size) {
      const ByteRope rope = Pieces(bytes + "rest", size);
      ByteCursor cursor(rope);
      std::vector<float> taken(matrix.size());
      TakeRows(format, &cursor, 5, absl::MakeSpan(taken));
      EXPECT_EQ(taken, expected);
      EXPECT_EQ(cursor.remaining(), 4u);
      ByteCursor again(rope);
      EXPECT_TRUE(TakeFiniteRows(format, &again, 9, 5));
      EXPECT_EQ(again.remaining(), 4u);
    }
  }
}

TEST(RowCodecTest, FindsWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const WireFormat format : kFormats) {
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      for (size_t place : {0u, 7u, 14u}) {
        std::vector<float> matrix = Matrix(3, 5);
        matrix[place] = bad;
        const ByteRope rope = Pieces(Encoded(format, matrix, 5), 7);
        ByteCursor cursor(rope);
        EXPECT_FALSE(TakeFiniteRows(format, &cursor, 3, 5));
      }
    }
  }
}

TEST(RowCodecTest, AScaleThatOverflowsIsNotFinite) {
  const float scale = 3e36f;  // finite, but not times 128
  std::string bytes(reinterpret_cast<const char*>(&scale), sizeof(scale));
  const ByteRope rope = Pieces(bytes + "\x80", 8);
  ByteCursor cursor(rope);
  EXPECT_FALSE(TakeFiniteRows(WireFormat::kInt8, &cursor, 1, 1));
}

TEST(RowCodecTest, NoRows) {
  EncodeRows(WireFormat::kInt8, absl::Span<const float>(), 4, nullptr);
  const ByteRope rope;
  ByteCursor cursor(rope);
  TakeRows(WireFormat::kFloat16, &cursor, 4, {});
  EXPECT_TRUE(TakeFiniteRows(WireFormat::kFloat32, &cursor, 0, 4));
}

}  // namespace
}  // namespace keelson
