#include "core/data/example_reader.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/data/example_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

const ExampleReader::Columns kColumns = {{"age", 0}, {"city", 1}, {"size", 2}, {"none", 3}};

// What protoc encodes of age [39, -1], city "Oslo", none [] and size [0.5, -2].
const std::string kGolden = absl::HexStringToBytes(
    "0a4c0a160a03616765120f1a0d0a0b27ffffffffffffffffff010a100a046369747912080a060a044f736c6f0a0a0a"
    "04"
    "6e6f6e6512021a000a140a0473697a65120c120a0a080000003f000000c0");

TEST(ExampleReaderTest, AllKinds) {
  EXPECT_EQ(ExampleBuilder()
                .Integers("age", {39, -1})
                .Texts("city", {"Oslo"})
                .Integers("none", {})
                .Numbers("size", {0.5f, -2})
                .Build(),
            kGolden);
  ExampleReader reader(&kColumns);
  size_t bad_byte = 0;
  ASSERT_TRUE(reader.Read(kGolden, &bad_byte)) << bad_byte;
  EXPECT_THAT(reader.values()[0].integers(), ElementsAre(39, -1));
  EXPECT_THAT(reader.values()[1].texts(), ElementsAre("Oslo"));
  EXPECT_THAT(reader.values()[2].numbers(), ElementsAre(0.5f, -2));
  EXPECT_EQ(reader.values()[3].kind(), ColumnValue::Kind::kMissing);
}

TEST(ExampleReaderTest, AReaderIsUsedAgain) {
  ExampleReader reader(&kColumns);
  size_t bad_byte = 0;
  ASSERT_TRUE(reader.Read(kGolden, &bad_byte));
  const std::string next = ExampleBuilder().Texts("age", {"a", "b"}).Build();
  ASSERT_TRUE(reader.Read(next, &bad_byte));
  EXPECT_THAT(reader.values()[0].texts(), ElementsAre("a", "b"));
  EXPECT_EQ(reader.values()[1].kind(), ColumnValue::Kind::kMissing);
  ASSERT_TRUE(reader.Read("", &bad_byte));
  EXPECT_EQ(reader.values()[0].kind(), ColumnValue::Kind::kMissing);
}

TEST(ExampleReaderTest, ListsThatAreNotPacked) {
  using std::string_literals::operator""s;
  const std::string example =
      ExampleBuilder()
          .Feature("age", "\x1a\x05\x08\x05\x08\xac\x02"s)           // 5, 300
          .Feature("size", "\x12\x0a\x0d\0\0\0\x3f\x0d\0\0\0\xc0"s)  // 0.5, -2
          .Build();
  ExampleReader reader(&kColumns);
  size_t bad_byte = 0;
  ASSERT_TRUE(reader.Read(example, &bad_byte));
  EXPECT_THAT(reader.values()[0].integers(), ElementsAre(5, 300));
  EXPECT_THAT(reader.values()[2].numbers(), ElementsAre(0.5f, -2));
}

TEST(ExampleReaderTest, TheLastOfANameAndOfAKindCounts) {
  using std::string_literals::operator""s;
  const std::string both = ExampleBuilder()
                               .Integers("age", {1})
                               .Texts("city", {"a"})
                               .Texts("age", {"x"})
                               .Feature("city", "\x0a\x03\x0a\x01p\x0a\x03\x0a\x01q"s)
                               .Feature("size", "\x0a\x03\x0a\x01p\x1a\x02\x08\x07"s)
                               .Build();
  ExampleReader reader(&kColumns);
  size_t bad_byte = 0;
  ASSERT_TRUE(reader.Read(both, &bad_byte));
  EXPECT_THAT(reader.values()[0].texts(), ElementsAre("x"));
  EXPECT_THAT(reader.values()[1].texts(), ElementsAre("p", "q"));
  EXPECT_THAT(reader.values()[2].integers(), ElementsAre(7));
}

TEST(ExampleReaderTest, UnknownFieldsAreSkipped) {
  using std::string_literals::operator""s;
  const std::string unknown =
      "\x10\x05\x19"
      "12345678"
      "\x1d"
      "1234"
      "\x22\x01z"s;
  const std::string example = unknown + ExampleBuilder().Integers("age", {4}).Build() + unknown;
  ExampleReader reader(&kColumns);
  size_t bad_byte = 0;
  ASSERT_TRUE(reader.Read(example, &bad_byte));
  EXPECT_THAT(reader.values()[0].integers(), ElementsAre(4));
}

TEST(ExampleReaderTest, BytesThatAreNoExample) {
  ExampleReader reader(&kColumns);
  const auto bad = [&](const std::string& example) {
    size_t bad_byte = 999;
    return reader.Read(example, &bad_byte) ? -1 : static_cast<int64_t>(bad_byte);
  };
  using std::string_literals::operator""s;
  for (size_t size = 1; size < kGolden.size(); ++size) {
    EXPECT_GE(bad(kGolden.substr(0, size)), 0) << size;
  }
  EXPECT_EQ(bad("\x0b"s), 1);              // a group
  EXPECT_EQ(bad("\x02\x01x"s), 3);         // field 0
  EXPECT_EQ(bad("\x0a\x02\x0a\x05"s), 4);  // an entry that is cut off
  EXPECT_EQ(bad("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s), 11);  // a number of 71 bits
  EXPECT_EQ(bad(ExampleBuilder().Feature("age", "\x1a\x03\x0a\x01\x80"s).Build()), 4);
  EXPECT_EQ(bad(ExampleBuilder()
                    .Feature("size",
                             "\x12\x05\x0a\x03"
                             "abc"s)
                    .Build()),
            4);
  EXPECT_EQ(bad(ExampleBuilder().Feature("city", "\x0a\x05\x0a\x01"s).Build()), 4);
  // Of features that nobody needs no value is read.
  EXPECT_EQ(bad(ExampleBuilder().Feature("other", "\x1a\x03\x0a\x01\x80"s).Build()), -1);
}

}  // namespace
}  // namespace keelson
