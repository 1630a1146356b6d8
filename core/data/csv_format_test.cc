#include "core/data/csv_format.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file_system_testing.h"
#include "core/data/columns/value_hash.h"
#include "core/data/criteo_format.h"
#include "core/data/record_format_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

const RecordSchema kPeople = {{{"age", Shape({1})}, {"city", {}, FeatureKind::kId}},
                              {{"income", 2}}};
constexpr char kHeader[] = "csv { header: ['age', 'city', 'note', 'income'] } ";

class CsvFormatTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<const RecordFormat>> Open(const std::string& config,
                                                           const RecordSchema& schema = kPeople,
                                                           const std::string& path = "/a.csv") {
    v1::DataConfig data;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &data)) << config;
    return NewCsvFormat(data, schema, path, &files_);
  }
  std::unique_ptr<const RecordFormat> Format(const std::string& config,
                                             const std::string& path = "/a.csv") {
    auto format = Open(config, kPeople, path);
    EXPECT_TRUE(format.ok()) << format.status();
    return *std::move(format);
  }
  std::string Error(const std::string& config, const RecordSchema& schema = kPeople) {
    return std::string(Open(config, schema).status().message());
  }
  // "COLUMN: expected …, found …" of a header; "none" of one that fits.
  static std::string HeaderError(const RecordFormat& format, const std::string& line) {
    RecordError error;
    if (format.CheckHeader(line, &error)) return "none";
    return absl::StrCat(error.column, ": expected ", error.expected, ", found ", error.found);
  }

  MemoryFileSystem files_;
};

TEST_F(CsvFormatTest, ColumnsByTheirNames) {
  files_.SetContent("/a.csv", "\xef\xbb\xbfincome, age,note,\"city\"\r\n1,20,,Rome\n");
  const auto format = Format("csv {}");
  EXPECT_TRUE(format->has_header());
  const Batch batch =
      ParseLines(*format, {"1, 20,x,Rome", "0,,\"a,\"\"b\"\"\",\"S\xc3\xa3o, Paulo\""});
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(20, 0));
  EXPECT_THAT(batch.features[1].ids,
              ElementsAre(HashValue("Rome", FieldSalt("city")),
                          HashValue("S\xc3\xa3o, Paulo", FieldSalt("city"))));
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(1, 0));
}

TEST_F(CsvFormatTest, AHeaderInTheConfiguration) {
  const auto format = Format(kHeader);
  EXPECT_FALSE(format->has_header());
  EXPECT_THAT(ParseLines(*format, {"7,a,,1"}).features[0].numbers.span(), ElementsAre(7));
}

// "NAME=VALUE" of each column of a line; a missing one has no value.
std::vector<std::string> ColumnsOf(const RecordFormat& format, const std::string& line) {
  const std::string ended = line + "\n";
  std::vector<std::string> texts;
  for (const RecordColumn& column :
       format.Columns(absl::string_view(ended).substr(0, line.size()))) {
    texts.push_back(absl::StrCat(column.name, "=", absl::StrJoin(column.values, "+")));
  }
  return texts;
}

TEST_F(CsvFormatTest, WhatALineHasInTheColumns) {
  const auto format = Format(kHeader);
  EXPECT_THAT(ColumnsOf(*format, "7,\"a,\"\"b\",x,1"),
              ElementsAre("age=7", "city=a,\"b", "income=1"));
  EXPECT_THAT(ColumnsOf(*format, "NA,,x,1"), ElementsAre("age=", "city=", "income=1"));
  // A label need not be one that the model takes.
  EXPECT_THAT(ColumnsOf(*format, "x,a,x,7"), ElementsAre("age=x", "city=a", "income=7"));
  EXPECT_THAT(ColumnsOf(*format, "7,a"), testing::IsEmpty());
}

TEST_F(CsvFormatTest, WhatCountsAsMissing) {
  const uint64_t missing = HashValue("", FieldSalt("city"));
  for (const char* text : {"", " ", "\"\"", "?", " ?", "NA", "\"NA\"", "NaN", "null", "NULL"}) {
    const Batch batch = ParseLines(*Format(kHeader), {absl::StrCat(text, ",", text, ",,1")});
    EXPECT_THAT(batch.features[1].ids, ElementsAre(missing)) << text;
    EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(0)) << text;
  }
  const std::string config =
      "csv { header: ['age', 'city', 'note', 'income'] missing_values: ['-', 'none'] }";
  const Batch batch = ParseLines(*Format(config), {"-,none,,1", ",NA,,1"});
  EXPECT_THAT(batch.features[1].ids, ElementsAre(missing, HashValue("NA", FieldSalt("city"))));
}

TEST_F(CsvFormatTest, SeparatorsAndQuotes) {
  const std::string names = "header: ['age', 'city', 'note', 'income']";
  const uint64_t rome = HashValue("Rome", FieldSalt("city"));
  const uint64_t quoted = HashValue("\"Rome", FieldSalt("city"));
  const auto city = [&](const std::string& csv, const std::string& path, const std::string& line) {
    return ParseLines(*Format(absl::StrCat("csv { ", names, csv, " }"), path), {line})
        .features[1]
        .ids.front();
  };
  EXPECT_EQ(city("", "/a.tsv", "1\tRome\t\t1"), rome);
  EXPECT_EQ(city("", "/a.tsv.gz", "1\tRome\t\t1"), rome);
  EXPECT_EQ(city("", "/a.tsv.zst", "1\tRome\t\t1"), rome);
  EXPECT_EQ(city(" separator: 'tab'", "/a.csv", "1\tRome\t\t1"), rome);
  EXPECT_EQ(city(" separator: ';'", "/a.tsv", "1;Rome;;1"), rome);
  EXPECT_EQ(city(" no_quotes: true", "/a.csv", "1,\"Rome,,1"), quoted);
}

TEST_F(CsvFormatTest, LinesThatAreNoRecords) {
  const auto format = Format(kHeader);
  EXPECT_EQ(LineErrorText(*format, ""), "1: expected 4 columns, found an empty line");
  EXPECT_EQ(LineErrorText(*format, "1,2,3"), "6: expected 4 columns, found 3");
  EXPECT_EQ(LineErrorText(*format, "1,2,3,1,5"), "10: expected 4 columns, found 5");
  EXPECT_EQ(LineErrorText(*format, "\"1\",2,3,1,5"), "12: expected 4 columns, found 5");
  EXPECT_EQ(LineErrorText(*format, "x,2,3,1"),
            "1: expected a number in the column \"age\", found \"x\"");
  EXPECT_EQ(LineErrorText(*format, "1,\"a,b\",c, 2"),
            "11: expected 0 or 1 as the label in the column \"income\", found \"2\"");
  EXPECT_EQ(LineErrorText(*format, "1,a,c,"),
            "7: expected a label in the column \"income\", found nothing");
  EXPECT_EQ(LineErrorText(*format, "1,\"a,c,1"),
            "3: expected a quotation mark that is closed in its line, found \"\\\"a\"");
}

TEST_F(CsvFormatTest, ColumnsThatTheFileLacks) {
  files_.SetContent("/a.csv", "years,city,city,income\n");
  EXPECT_EQ(Error("csv {}"),
            "/a.csv: expected a column \"age\" (the feature \"age\"), found years, city, city, "
            "income");
  EXPECT_EQ(Error("csv {} features { name: 'age' columns { column: 'years' } }"),
            "/a.csv: expected one column \"city\" (the feature \"city\"), found 2");
  EXPECT_EQ(
      Error("csv { header: ['age', 'city'] }"),
      "data.csv.header: expected a column \"income\" (the label \"income\"), found age, city");
  EXPECT_EQ(Error("csv { header: ['age', 'city'] } features { name: 'city' columns { cross { "
                  "columns: ['age', 'x'] } } } "),
            "data.csv.header: expected a column \"x\" (data.features[0].columns[0]), found age, "
            "city");
  std::string wide = "c0";
  for (int i = 1; i < 30; ++i) absl::StrAppend(&wide, ",c", i);
  files_.SetContent("/a.csv", wide);
  EXPECT_EQ(
      Error("csv {}"),
      "/a.csv: expected a column \"age\" (the feature \"age\"), found c0, c1, c2, c3, c4, c5, "
      "c6, c7, c8, c9, ...");
  files_.SetContent("/a.csv",
                    "gr\xc3\xb6\xc3\x9f"
                    "e,\x01\n");
  EXPECT_EQ(Error("csv {}"),
            "/a.csv: expected a column \"age\" (the feature \"age\"), found gr\xc3\xb6\xc3\x9f"
            "e, \\x01");
  files_.SetContent("/a.csv", "age,\"city\n");
  EXPECT_EQ(Error("csv {}"),
            "/a.csv:1:5: expected a quotation mark that is closed in its line, found \"\\\"city\"");
  EXPECT_EQ(Error("csv {}", {{{"age", Shape({2})}}, {}}).substr(0, 19), "the feature \"age\": ");
}

TEST_F(CsvFormatTest, HeadersOfOtherFiles) {
  files_.SetContent("/a.csv", "age,city,income");
  const auto format = Format("csv {}");
  EXPECT_EQ(HeaderError(*format, "age, \"city\",income"), "none");
  EXPECT_EQ(HeaderError(*format, "age,income,city"),
            "5: expected the column \"city\", as in the first file, found \"income\"");
  EXPECT_EQ(HeaderError(*format, "age,\v"),
            "5: expected the column \"city\", as in the first file, found \"\\x0b\"");
  EXPECT_EQ(HeaderError(*format, "age,city"), "9: expected 3 columns, found 2");
  EXPECT_EQ(HeaderError(*format, "age,city,income,x"), "18: expected 3 columns, found 4");
  EXPECT_EQ(HeaderError(*format, "age,\"city,income"),
            "5: expected a quotation mark that is closed in its line, found \"\\\"city\"");
}

TEST_F(CsvFormatTest, AFirstLineLongerThanAPiece) {
  const std::string name(10000, 'n');
  files_.SetContent("/a.csv", absl::StrCat(name, ",age,city,income\n"));
  EXPECT_TRUE(Open("csv {}").ok());
  files_.SetContent("/a.csv", std::string(17 << 20, 'n'));
  EXPECT_EQ(Error("csv {}"),
            "/a.csv:1: expected a line of at most 16777216 bytes with the names of the columns, "
            "found a longer one");
}

TEST_F(CsvFormatTest, TheFingerprintIsOfAllThatDecides) {
  const auto fingerprint = [&](const std::string& config) { return Format(config)->fingerprint(); };
  const std::string names = "header: ['age', 'city', 'income'";
  const uint64_t one = fingerprint(absl::StrCat("csv { ", names, "] }"));
  EXPECT_EQ(fingerprint(absl::StrCat("csv { ", names, "] separator: ',' }")), one);
  EXPECT_NE(fingerprint(absl::StrCat("csv { ", names, "] separator: ';' }")), one);
  EXPECT_NE(fingerprint(absl::StrCat("csv { ", names, "] no_quotes: true }")), one);
  EXPECT_NE(fingerprint(absl::StrCat("csv { ", names, "] missing_values: 'x' }")), one);
  EXPECT_NE(fingerprint(absl::StrCat("csv { ", names, ", 'x'] }")), one);
  EXPECT_NE(fingerprint(absl::StrCat("csv { ", names, "] } labels { name: 'income' at_least: 3 }")),
            one);
}

// The columns of Criteo's logs as CSV have the numbers and ids of the format of that name.
TEST_F(CsvFormatTest, CriteosLogsAsCsv) {
  RecordSchema schema = {{{"numbers", Shape({13})}, {"missing", Shape({13})}}, {{"label", 2}}};
  std::string config = "csv { separator: 'tab' header: 'label'";
  std::string numbers, missing;
  for (int k = 1; k <= 13; ++k) {
    absl::StrAppend(&config, " header: 'n", k, "'");
    absl::StrAppend(&numbers, " columns { column: 'n", k, "' number { log: true min: 0 } }");
    absl::StrAppend(&missing, " columns { column: 'n", k, "' missing {} }");
  }
  for (int k = 1; k <= 26; ++k) {
    absl::StrAppend(&config, " header: 'c", k, "'");
    schema.features.push_back({absl::StrCat("c", k), {}, FeatureKind::kId, false, k % 2 * 100});
  }
  absl::StrAppend(&config, " } features { name: 'numbers'", numbers,
                  " } features { name: 'missing'", missing, " }");
  const auto csv = Open(config, schema);
  ASSERT_TRUE(csv.ok()) << csv.status();
  const auto criteo = NewCriteoFormat({}, schema);
  std::vector<std::string> lines;
  for (int i = 0; i < 20; ++i) {
    std::string line = absl::StrCat(i % 2);
    for (int k = 0; k < 13; ++k) {
      absl::StrAppend(&line, "\t", (i + k) % 5 == 0 ? "" : absl::StrCat((i - 3) * k * k * 97));
    }
    for (int k = 0; k < 26; ++k) {
      absl::StrAppend(&line, "\t", (i + k) % 7 == 0 ? "" : absl::StrCat(absl::Hex(i * k * 12345)));
    }
    lines.push_back(line);
  }
  const Batch expected = ParseLines(**criteo, lines), found = ParseLines(**csv, lines);
  for (size_t i = 0; i < schema.features.size(); ++i) {
    EXPECT_EQ(found.features[i].ids, expected.features[i].ids);
    EXPECT_THAT(found.features[i].numbers.span(),
                testing::ElementsAreArray(expected.features[i].numbers.span()));
  }
  EXPECT_THAT(found.labels[0].span(), testing::ElementsAreArray(expected.labels[0].span()));
}

}  // namespace
}  // namespace keelson
