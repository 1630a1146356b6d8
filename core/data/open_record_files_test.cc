#include "core/data/open_record_files.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file_system_testing.h"
#include "core/data/example_testing.h"
#include "core/data/open_datasets.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const RecordSchema kLibsvmSchema = {{{"features", {}, FeatureKind::kBag, true}}, {{"label", 2}}};

v1::DataConfig LineConfig(const std::string& text) {
  v1::DataConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::vector<uint64_t> FirstIds(const Dataset& dataset) {
  std::vector<int64_t> all(dataset.num_records());
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  EXPECT_TRUE(dataset.Read(all, &batch).ok());
  return batch.features[0].ids;
}

class OpenRecordFilesTest : public testing::Test {
 protected:
  OpenRecordFilesTest() {
    EXPECT_TRUE(files_.CreateDirectories("/d").ok());
    std::string content;
    for (int i = 0; i < 10; ++i) absl::StrAppend(&content, "1 ", i, ":1\n");
    files_.SetContent("/d/a", content);
  }

  absl::StatusOr<Datasets> Open(const std::string& config,
                                const RecordSchema& schema = kLibsvmSchema) {
    return OpenRecordFiles(LineConfig("data_dir: '/d' " + config), schema, &files_);
  }

  MemoryFileSystem files_;
};

TEST_F(OpenRecordFilesTest, OneFileIsSplit) {
  const auto data = Open("libsvm {}");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(FirstIds(*data->train), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(FirstIds(*data->eval), ElementsAre(8, 9));
}

TEST_F(OpenRecordFilesTest, FilesThatEvaluate) {
  files_.SetContent("/d/b", "-1 50:1\n");
  const auto data = Open("libsvm {} train_files: 'a' eval_files: 'b'");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->num_records(), 10);
  EXPECT_THAT(FirstIds(*data->eval), ElementsAre(50));
}

TEST_F(OpenRecordFilesTest, SubsetsOfTheSameFiles) {
  const auto data = Open(
      "libsvm {} train_files: 'a' eval_files: 'a' train_subset { end: 3 } eval_subset { begin: 8 "
      "}");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(FirstIds(*data->train), ElementsAre(0, 1, 2));
  EXPECT_THAT(FirstIds(*data->eval), ElementsAre(8, 9));
}

TEST_F(OpenRecordFilesTest, ParquetHasAReaderOfItsOwn) {
  // Of files of the system alone, if the build has one.
  const absl::Status status = Open("parquet {}", {{{"x", {}, FeatureKind::kId}}, {}}).status();
  EXPECT_TRUE(absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/d/a"));
}

TEST_F(OpenRecordFilesTest, ASubsetThatTheFilesHaveNot) {
  const auto data = Open("libsvm {} train_files: 'a' train_subset { end: 9 }");
  EXPECT_EQ(data.status(),
            absl::InvalidArgumentError("data.train_subset: expected 0 <= begin < end <= 8, the "
                                       "records of /d/a, found [0, 9)"));
}

TEST_F(OpenRecordFilesTest, MaxBadRecordsIsForEachSet) {
  files_.SetContent("/d/a", "1 1:1\nx\n");
  files_.SetContent("/d/b", "x\n1 2:1\n");
  const std::string files = "libsvm {} train_files: 'a' eval_files: 'b' ";
  const auto data = Open(files + "max_bad_records: 1");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(FirstIds(*data->train), ElementsAre(1));
  EXPECT_THAT(FirstIds(*data->eval), ElementsAre(2));
  EXPECT_THAT(std::string(Open(files).status().message()), HasSubstr("/d/b:1:1: expected a label"));
}

TEST_F(OpenRecordFilesTest, Criteo) {
  const std::string line =
      absl::StrCat("1\t", absl::StrJoin(std::vector<int>(13, 5), "\t"), std::string(26, '\t'));
  files_.SetContent("/d/a", line + "\n" + line + "\n");
  const auto data = Open("criteo {}", {{{"c3", {}, FeatureKind::kId}}, {{"label", 2}}});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->num_records(), 1);
  EXPECT_THAT(std::string(Open("criteo {}").status().message()),
              HasSubstr("data.criteo: expected"));
}

TEST_F(OpenRecordFilesTest, CsvFilesForTrainingAndEvaluationMayOrderColumnsInTheirWay) {
  files_.SetContent("/d/a", "x,label\n1,0\n2,1\n");
  files_.SetContent("/d/b", "label,x\n0,3\n");
  const RecordSchema schema = {{{"x", {}, FeatureKind::kId}}, {{"label", 2}}};
  const std::string config =
      "csv {} features { name: 'x' columns { integer {} } } train_files: 'a' ";
  const auto data = Open(config + "eval_files: 'b'", schema);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(FirstIds(*data->train), ElementsAre(1, 2));
  EXPECT_THAT(FirstIds(*data->eval), ElementsAre(3));
  EXPECT_EQ(Open(config + "train_files: 'b'", schema).status(),
            absl::InvalidArgumentError(
                "/d/b:1:1: expected the column \"x\", as in the first file, found \"label\""));
  EXPECT_EQ(Open("csv {}", kLibsvmSchema).status(),
            absl::InvalidArgumentError("data directory /d: expected a single file, as "
                                       "data.train_files names none, found a, b"));
}

TEST_F(OpenRecordFilesTest, TfRecords) {
  files_.SetContent("/d/a", EncodeTfRecord(ExampleBuilder().Integers("x", {7}).Build()) +
                                EncodeTfRecord(ExampleBuilder().Integers("x", {8}).Build()));
  const RecordSchema schema = {{{"x", {}, FeatureKind::kId}}, {}};
  const auto data = Open(
      "tf_record {} features { name: 'x' columns { integer {} } } train_files: 'a' "
      "eval_files: 'a'",
      schema);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(FirstIds(*data->train), ElementsAre(7, 8));
}

TEST(OpenRecordsTest, EverySourceOfRecordsHasFiles) {
  for (const char* source : {"libsvm {}", "criteo {}", "csv {}", "tf_record {}"}) {
    EXPECT_EQ(OpenDatasets(LineConfig(source), kLibsvmSchema, 1).status(),
              absl::InvalidArgumentError(
                  "data.data_dir: expected the directory of the files (--data_dir), found none"))
        << source;
  }
}

TEST_F(OpenRecordFilesTest, WhatIsNotThere) {
  EXPECT_EQ(Open("libsvm {} train_files: 'x'").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenRecordFiles(LineConfig("libsvm {}"), kLibsvmSchema, &files_).status(),
            absl::InvalidArgumentError(
                "data.data_dir: expected the directory of the files (--data_dir), found none"));
}

TEST(OpenRealFilesTest, A9a) {
  const std::string directory = "../shared/data/a9a";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "skipped: no ../shared/data";
  const auto data = OpenDatasets(
      LineConfig(absl::StrCat("data_dir: '", directory, "' libsvm {} train_files: 'a9a.t' ",
                              "eval_files: 'a9a.t' train_subset { end: 12000 } ",
                              "eval_subset { begin: 12000 }")),
      kLibsvmSchema, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->train->num_records(), 12000);
  ASSERT_EQ(data->eval->num_records(), 4281);
  std::vector<int64_t> all(12000);
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  ASSERT_TRUE(data->train->Read(all, &batch).ok());
  const auto labels = batch.labels[0].span();
  EXPECT_EQ(std::count(labels.begin(), labels.end(), 1.0f), 2806);
  EXPECT_EQ(*std::max_element(batch.features[0].ids.begin(), batch.features[0].ids.end()), 122u);
}

}  // namespace
}  // namespace keelson
