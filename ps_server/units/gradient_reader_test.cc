#include "ps_server/units/gradient_reader.h"

#include <cmath>
#include <limits>

#include "core/wire/value_codec.h"
#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> SomeGradient(int64_t elements) {
  std::vector<float> gradient;
  for (int64_t e = 0; e < elements; ++e) gradient.push_back(TestGradient(0, e, 1));
  return gradient;
}

// A top-k gradient as it is, sensible or not.
std::string TopK(const std::vector<uint32_t>& positions, const std::vector<float>& values) {
  const auto count = static_cast<uint32_t>(positions.size());
  return std::string(reinterpret_cast<const char*>(&count), sizeof(count)) +
         std::string(reinterpret_cast<const char*>(positions.data()), 4 * positions.size()) +
         BytesOf(values);
}

// What a visit means.
void Decode(const EncodedGradient& piece, absl::Span<float> to) {
  if (piece.format == WireFormat::kInt8) return DecodeInt8Group(piece.scale, piece.data, to);
  DecodeElements(piece.format, piece.data, to);
}

class GradientReaderTest : public testing::TestWithParam<int> {
 protected:
  // In fragments of up to 5 bytes, so that every check meets borders.
  absl::Status Check(const std::string& bytes, int64_t elements, bool reject_non_finite = false) {
    return Check(format(), bytes, elements, reject_non_finite);
  }
  static absl::Status Check(WireFormat format, const std::string& bytes, int64_t elements,
                            bool reject_non_finite = false) {
    const ByteRope rope = Fragmented(bytes, 5, 3);
    ByteCursor cursor(rope);
    return CheckGradient({format, &cursor}, elements, reject_non_finite);
  }
  WireFormat format() const { return static_cast<WireFormat>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Formats, GradientReaderTest, testing::Range(0, kNumWireFormats),
                         [](const auto& info) {
                           return std::string(WireFormatName(static_cast<WireFormat>(info.param)));
                         });

TEST_P(GradientReaderTest, GivesEveryElementOnceInOrder) {
  for (const int64_t elements : {1, 2, 1000, 1024, 4096, 10001}) {
    const std::string bytes = EncodeGradient(format(), SomeGradient(elements));
    for (const size_t longest : {1, 2, 9, 5000, 1 << 20}) {
      const ByteRope rope = Fragmented(bytes, longest, 2);
      ByteCursor cursor(rope);
      std::vector<float> decoded(elements);
      int64_t next = 0;
      ReadGradient({format(), &cursor}, elements,
                   [&](int64_t first, int64_t count, const EncodedGradient& piece) {
                     ASSERT_EQ(first, next);
                     ASSERT_GT(count, 0);
                     next += count;
                     ASSERT_LE(next, elements);
                     Decode(piece, absl::MakeSpan(decoded.data() + first, count));
                   });
      EXPECT_EQ(next, elements);
      EXPECT_EQ(cursor.remaining(), 0u);
      EXPECT_EQ(decoded, DecodeGradient(format(), bytes, elements));
    }
  }
}

TEST_P(GradientReaderTest, CheckAndSkipMoveBehindTheGradient) {
  constexpr int64_t kElements = 1500;
  const std::string bytes = EncodeGradient(format(), SomeGradient(kElements)) + "abc";
  const ByteRope rope = Fragmented(bytes, 100, 4);
  for (const bool reject_non_finite : {false, true}) {
    ByteCursor checked(rope);
    EXPECT_TRUE(CheckGradient({format(), &checked}, kElements, reject_non_finite).ok());
    EXPECT_EQ(checked.remaining(), 3u);
  }
  ByteCursor skipped(rope);
  SkipGradient({format(), &skipped}, kElements);
  EXPECT_EQ(skipped.remaining(), 3u);
}

TEST_P(GradientReaderTest, AnyTruncationIsRefusedWithBothSizes) {
  constexpr int64_t kElements = 1100;
  const std::string bytes = EncodeGradient(format(), SomeGradient(kElements));
  EXPECT_TRUE(Check(bytes, kElements).ok());
  for (const size_t size : {size_t{0}, size_t{3}, size_t{5}, bytes.size() / 2, bytes.size() - 1}) {
    const absl::Status status = Check(bytes.substr(0, size), kElements);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const size_t expected = GetParam() == 4 && size < 4 ? 4 : bytes.size();
    EXPECT_EQ(status.message(),
              absl::StrCat("expected ", expected, " bytes, found ", size, " left"));
  }
}

TEST_P(GradientReaderTest, ElementThatIsNotFiniteIsRefusedWhereAsked) {
  constexpr int64_t kElements = 1100;
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    for (const size_t position : {size_t{0}, size_t{700}, size_t{1099}}) {
      std::vector<float> gradient = SomeGradient(kElements);
      gradient[position] = bad;
      const std::string bytes = EncodeGradient(format(), gradient);
      EXPECT_TRUE(Check(bytes, kElements, /*reject_non_finite=*/false).ok());
      const absl::Status status = Check(bytes, kElements, /*reject_non_finite=*/true);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("finite"));
    }
  }
  EXPECT_TRUE(Check(EncodeGradient(format(), SomeGradient(kElements)), kElements, true).ok());
}

TEST(GradientReaderInt8Test, ScaleThatCouldOverflowIsNotFinite) {
  std::string bytes = EncodeGradient(WireFormat::kInt8, {1, 2, 3});
  const float scale = 3e38f;
  bytes.replace(0, sizeof(scale), reinterpret_cast<const char*>(&scale), sizeof(scale));
  ByteRope rope;
  rope.AppendCopy(bytes);
  ByteCursor cursor(rope);
  EXPECT_TRUE(CheckGradient({WireFormat::kInt8, &cursor}, 3, false).ok());
  ByteCursor again(rope);
  EXPECT_FALSE(CheckGradient({WireFormat::kInt8, &again}, 3, true).ok());
}

absl::Status CheckTopK(const std::string& bytes, int64_t elements) {
  const ByteRope rope = Fragmented(bytes, 5, 3);
  ByteCursor cursor(rope);
  return CheckGradient({WireFormat::kTopK, &cursor}, elements, false);
}

TEST(GradientReaderTopKTest, PositionsAscendWithinTheBlock) {
  EXPECT_TRUE(CheckTopK(TopK({0, 3, 9}, {1, 2, 3}), 10).ok());
  EXPECT_EQ(CheckTopK(TopK({0, 3, 10}, {1, 2, 3}), 10),
            absl::InvalidArgumentError("expected positions below 10, found 10"));
  EXPECT_EQ(CheckTopK(TopK({4, 3}, {1, 2}), 10),
            absl::InvalidArgumentError("expected ascending positions, found 3 after 4"));
  EXPECT_EQ(CheckTopK(TopK({3, 3}, {1, 2}), 10),
            absl::InvalidArgumentError("expected ascending positions, found 3 after 3"));
  EXPECT_EQ(CheckTopK(TopK({0xffffffff}, {1}), 10),
            absl::InvalidArgumentError("expected positions below 10, found 4294967295"));
}

TEST(GradientReaderTopKTest, KeepsNoMoreThanTheBlockHas) {
  EXPECT_TRUE(CheckTopK(TopK({}, {}), 10).ok());
  EXPECT_TRUE(CheckTopK(TopK({0, 1}, {1, 2}), 2).ok());
  EXPECT_EQ(CheckTopK(TopK({0, 1}, {1, 2}), 1),
            absl::InvalidArgumentError("expected at most 1 kept elements, found 2"));
  EXPECT_EQ(CheckTopK("\xff\xff\xff\xff", 10),
            absl::InvalidArgumentError("expected at most 10 kept elements, found 4294967295"));
}

TEST(GradientReaderTopKTest, IsGivenInBoundedChunks) {
  constexpr int64_t kElements = 100'000;
  ByteRope rope;
  rope.AppendOwned(TopK({4095, 4096, 99'999}, {1, 2, 3}));
  ByteCursor cursor(rope);
  std::vector<float> decoded(kElements);
  ReadGradient({WireFormat::kTopK, &cursor}, kElements,
               [&](int64_t first, int64_t count, const EncodedGradient& piece) {
                 EXPECT_LE(count, 4096);
                 Decode(piece, absl::MakeSpan(decoded.data() + first, count));
               });
  std::vector<float> expected(kElements);
  expected[4095] = 1;
  expected[4096] = 2;
  expected[99'999] = 3;
  EXPECT_EQ(decoded, expected);
}

}  // namespace
}  // namespace keelson
