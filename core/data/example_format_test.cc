#include "core/data/example_format.h"

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/data/columns/value_hash.h"
#include "core/data/csv_format.h"
#include "core/data/example_testing.h"
#include "core/data/file_records.h"
#include "core/data/idx_testing.h"
#include "core/data/record_format_testing.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const RecordSchema kVisitors = {
    {{"age", Shape({1})}, {"city", {}, FeatureKind::kId}, {"seen", {}, FeatureKind::kBag}},
    {{"income", 2}}};

std::string Person(int64_t age, const std::string& city, const std::vector<int64_t>& seen,
                   int64_t income) {
  return EncodeTfRecord(ExampleBuilder()
                            .Integers("age", {age})
                            .Texts("city", {city})
                            .Integers("seen", seen)
                            .Integers("income", {income})
                            .Numbers("unused", {1, 2})
                            .Build());
}

class ExampleFormatTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<const FileRecords>> Open(const std::vector<std::string>& paths,
                                                          int64_t max_bad_records = 0,
                                                          const RecordSchema& schema = kVisitors) {
    v1::DataConfig data;
    data.mutable_tf_record();
    auto format = NewExampleFormat(data, schema, paths.front(), &files_);
    if (!format.ok()) return format.status();
    return FileRecords::Open(paths, *std::move(format), max_bad_records, &files_);
  }
  std::string Error(const std::vector<std::string>& paths, const RecordSchema& schema = kVisitors) {
    return std::string(Open(paths, 0, schema).status().message());
  }
  static absl::StatusOr<Batch> ReadAll(const FileRecords& records) {
    std::vector<int64_t> all(records.size());
    std::iota(all.begin(), all.end(), 0);
    Batch batch;
    const absl::Status status = records.Read(all, &batch);
    if (!status.ok()) return status;
    return batch;
  }

  MemoryFileSystem files_;
};

TEST_F(ExampleFormatTest, FeaturesOfExamples) {
  files_.SetContent("/a", Person(30, "Oslo", {7, 8}, 1) + Person(40, "", {}, 0));
  files_.SetContent("/b", EncodeTfRecord(ExampleBuilder().Integers("income", {1}).Build()));
  const auto records = Open({"/a", "/b"});
  ASSERT_TRUE(records.ok()) << records.status();
  const auto batch = ReadAll(**records);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->features[0].numbers.span(), ElementsAre(30, 40, 0));
  const uint64_t city = FieldSalt("city"), seen = FieldSalt("seen");
  EXPECT_THAT(batch->features[1].ids,
              ElementsAre(HashValue("Oslo", city), HashValue("", city), HashValue("", city)));
  EXPECT_THAT(batch->features[2].ids, ElementsAre(HashValue("7", seen), HashValue("8", seen)));
  EXPECT_THAT(batch->features[2].offsets, ElementsAre(0, 2, 2, 2));
  EXPECT_THAT(batch->labels[0].span(), ElementsAre(1, 0, 1));
}

TEST_F(ExampleFormatTest, WhatAnExampleHasInTheColumns) {
  files_.SetContent("/a", Person(30, "Oslo", {7, 8}, 1) + Person(40, "", {}, 0));
  const auto records = Open({"/a"});
  ASSERT_TRUE(records.ok()) << records.status();
  const RecordColumns columns = *(*records)->ReadColumns(0);
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_EQ(columns[0].name, "age");
  EXPECT_THAT(columns[0].values, ElementsAre("30"));
  EXPECT_THAT(columns[1].values, ElementsAre("Oslo"));
  EXPECT_THAT(columns[2].values, ElementsAre("7", "8"));
  EXPECT_EQ(columns[3].name, "income");
  EXPECT_THAT((*(*records)->ReadColumns(1))[2].values, testing::IsEmpty());
}

TEST_F(ExampleFormatTest, AnIntegerHasTheIdOfItsTextInCsv) {
  const RecordSchema schema = {{{"city", {}, FeatureKind::kId, false, 1000}}, {}};
  files_.SetContent("/a", EncodeTfRecord(ExampleBuilder().Integers("city", {-42}).Build()));
  const auto records = Open({"/a"}, 0, schema);
  ASSERT_TRUE(records.ok()) << records.status();
  v1::DataConfig csv;
  csv.mutable_csv()->add_header("city");
  const auto format = NewCsvFormat(csv, schema, "/a.csv", &files_);
  ASSERT_TRUE(format.ok()) << format.status();
  EXPECT_EQ(ReadAll(**records)->features[0].ids, ParseLines(**format, {"-42"}).features[0].ids);
}

TEST_F(ExampleFormatTest, PackedFiles) {
  const std::string content = Person(30, "Oslo", {}, 1) + Person(40, "Rome", {}, 0);
  files_.SetContent("/a.gz", GzipContent(content));
  files_.SetContent("/a.zst", ZstdContent(content));
  for (const char* path : {"/a.gz", "/a.zst"}) {
    const auto records = Open({path});
    ASSERT_TRUE(records.ok()) << records.status();
    EXPECT_THAT(ReadAll(**records)->labels[0].span(), ElementsAre(1, 0));
  }
}

TEST_F(ExampleFormatTest, RecordsInAnyOrder) {
  std::string content;
  for (int i = 0; i < 100; ++i) content += Person(i, std::string(i, 'c'), {i}, i % 2);
  files_.SetContent("/a", content);
  const auto records = Open({"/a"});
  ASSERT_TRUE(records.ok()) << records.status();
  Batch batch;
  ASSERT_TRUE((*records)->Read({{99, 3, 50, 49, 3}}, &batch).ok());
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(99, 3, 50, 49, 3));
}

TEST_F(ExampleFormatTest, RecordsThatAreNone) {
  const std::string good = Person(30, "Oslo", {}, 1);
  const std::string none = EncodeTfRecord("no example");
  const std::string label = Person(30, "Oslo", {}, 2);
  files_.SetContent("/a", none);
  EXPECT_EQ(
      Error({"/a"}),
      "/a: record 1 at byte 0: expected a tf.Example, found other bytes, from byte 1 of it on");
  files_.SetContent("/a", good + label);
  auto records = Open({"/a"});
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ(ReadAll(**records).status(),
            absl::InvalidArgumentError(
                absl::StrCat("/a: record 2 at byte ", good.size(),
                             ": expected 0 or 1 as the label in the column \"income\", found 2")));
  files_.SetContent("/a", label + good + none);
  records = Open({"/a"}, 2);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ((*records)->size(), 1);
  EXPECT_THAT(ReadAll(**records)->features[0].numbers.span(), ElementsAre(30));
  EXPECT_THAT(std::string(Open({"/a"}, 1).status().message()),
              HasSubstr("; it is one bad record more than data.max_bad_records (1)"));
}

TEST_F(ExampleFormatTest, DamagedDataAreNoBadRecord) {
  std::string content = Person(30, "Oslo", {}, 1);
  const size_t second = content.size();
  content += Person(40, "Rome", {}, 1);
  content[second + 20] ^= 1;
  files_.SetContent("/a", content);
  const std::string error = absl::StrCat(
      "/a: record 2 at byte ", second, ": expected data that fits its checksum, found other data");
  const auto records = Open({"/a"});
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ(ReadAll(**records).status(), absl::DataLossError(error));
  EXPECT_EQ(Open({"/a"}, 10).status(), absl::DataLossError(error));
  files_.SetContent("/a", content.substr(0, content.size() - 3));
  EXPECT_THAT(Error({"/a"}), HasSubstr("found the end of the file after"));
  files_.SetContent("/a", "");
  EXPECT_EQ(Error({"/a"}), "/a: expected one record or more, found an empty file");
}

TEST_F(ExampleFormatTest, AColumnThatNoExampleHas) {
  files_.SetContent("/a", Person(30, "Oslo", {}, 1) + Person(40, "Rome", {}, 0));
  const RecordSchema schema = {{{"town", {}, FeatureKind::kId}}, {{"income", 2}}};
  EXPECT_EQ(Error({"/a"}, schema),
            "/a: expected a column \"town\" (the feature \"town\") in one of the first 2 examples, "
            "found age, city, income, seen, unused");
  files_.SetContent("/a", EncodeTfRecord(ExampleBuilder()
                                             .Integers("gr\xc3\xb6\xc3\x9f"
                                                       "e\n",
                                                       {1})
                                             .Build()));
  EXPECT_THAT(Error({"/a"}), HasSubstr("found gr\xc3\xb6\xc3\x9f"
                                       "e\\n"));
  ExampleBuilder wide;
  for (int i = 10; i < 30; ++i) wide.Integers(absl::StrCat("c", i), {1});
  files_.SetContent("/a", EncodeTfRecord(wide.Build()));
  EXPECT_THAT(Error({"/a"}),
              HasSubstr("found c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, ..."));
}

}  // namespace
}  // namespace keelson
