#include "core/data/csv_line.h"

#include <list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

// The fields' texts; or "COLUMN: expected …, found …".
std::vector<std::string> Fields(const std::string& line, const CsvSyntax& syntax = {}) {
  std::vector<std::string> fields;
  std::list<std::string> kept;
  RecordError error;
  const auto keep = [&](std::string text) -> absl::string_view {
    return kept.emplace_front(std::move(text));
  };
  const auto visit = [&](const CsvField& field) {
    EXPECT_EQ(field.index, fields.size());
    fields.emplace_back(field.text);
  };
  if (ForEachField(line, syntax, keep, visit, &error)) return fields;
  return {absl::StrCat(error.column, ": expected ", error.expected, ", found ", error.found)};
}

std::vector<std::string> PlainFields(const std::string& line, char separator = ',') {
  std::vector<std::string> fields;
  std::vector<size_t> begins;
  const size_t count = ForEachPlainField(line, separator, [&](const CsvField& field) {
    EXPECT_EQ(field.index, fields.size());
    fields.emplace_back(field.text);
    begins.push_back(field.begin);
  });
  EXPECT_EQ(count, fields.size());
  // Where a field begins is behind the separators and fields before it.
  const std::vector<std::string> parts = absl::StrSplit(line, separator);
  size_t begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(begins[i], begin);
    begin += parts[i].size() + 1;
  }
  return fields;
}

TEST(CsvLineTest, FieldsOfAllLengths) {
  // Fields begin and end at all places of a word of eight bytes.
  for (size_t count = 0; count < 20; ++count) {
    for (size_t length = 0; length < 20; ++length) {
      std::string line;
      std::vector<std::string> expected;
      for (size_t i = 0; i <= count; ++i) {
        expected.emplace_back((length + i) % 20, static_cast<char>('a' + i));
        absl::StrAppend(&line, i == 0 ? "" : ",", expected.back());
      }
      EXPECT_EQ(PlainFields(line), expected);
      EXPECT_EQ(Fields(line), expected);
    }
  }
}

TEST(CsvLineTest, EveryByteButTheSeparatorIsText) {
  for (int c = 0; c < 256; ++c) {
    if (c == ',' || c == ' ' || c == '\t' || c == '"') continue;
    const std::string text(9, static_cast<char>(c));
    EXPECT_THAT(PlainFields(text + "," + text), ElementsAre(text, text));
  }
}

TEST(CsvLineTest, BlanksAroundAFieldAreNoneOfIt) {
  EXPECT_THAT(PlainFields(" a b ,\tc, ,d"), ElementsAre("a b", "c", "", "d"));
  EXPECT_THAT(Fields(" a b ,\t\"c\" , \" d\""), ElementsAre("a b", "c", " d"));
  EXPECT_THAT(PlainFields("a  b", ' '), ElementsAre("a", "", "b"));
  EXPECT_THAT(PlainFields("a\t\t b", '\t'), ElementsAre("a", "", "b"));
  EXPECT_THAT(Fields("a\t\t\"b\"", {'\t'}), ElementsAre("a", "", "b"));
}

TEST(CsvLineTest, QuotedFields) {
  EXPECT_THAT(Fields(R"("a,b","","say ""hi""","""",x"y)"),
              ElementsAre("a,b", "", "say \"hi\"", "\"", "x\"y"));
  EXPECT_THAT(Fields(R"("a",b)", {',', false}), ElementsAre("\"a\"", "b"));
  EXPECT_THAT(Fields(""), ElementsAre(""));
  EXPECT_THAT(Fields("\"\""), ElementsAre(""));
}

TEST(CsvLineTest, QuotationMarksThatDoNotFit) {
  EXPECT_THAT(
      Fields("a, \"b,c"),
      ElementsAre("4: expected a quotation mark that is closed in its line, found \"\\\"b\""));
  EXPECT_THAT(Fields("\"b\"\""),
              ElementsAre("1: expected a quotation mark that is closed in its line, found "
                          "\"\\\"b\\\"\\\"\""));
  EXPECT_THAT(Fields("\""), ElementsAre("1: expected a quotation mark that is closed in its line, "
                                        "found \"\\\"\""));
  EXPECT_THAT(Fields("\"b\" x,c"),
              ElementsAre("5: expected the field's end behind its quotation mark, found \"x\""));
}

}  // namespace
}  // namespace keelson
