#include "core/data/file_records.h"

#include <numeric>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/data/libsvm_format.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const RecordSchema kBagSchema = {{{"features", {}, FeatureKind::kBag, true}}, {{"label", 0}}};

std::unique_ptr<const RecordFormat> BagFormat() { return *NewLibsvmFormat({}, kBagSchema); }

class FileRecordsTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<const FileRecords>> Open(const std::vector<std::string>& paths,
                                                          int64_t max_bad_records = 0) {
    return FileRecords::Open(paths, BagFormat(), max_bad_records, &files_);
  }

  static std::vector<float> Labels(const Dataset& dataset) {
    std::vector<int64_t> all(dataset.num_records());
    std::iota(all.begin(), all.end(), 0);
    return Labels(dataset, all);
  }
  static std::vector<float> Labels(const Dataset& dataset, const std::vector<int64_t>& records) {
    Batch batch;
    const absl::Status status = dataset.Read(records, &batch);
    EXPECT_TRUE(status.ok()) << status;
    return {batch.labels[0].span().begin(), batch.labels[0].span().end()};
  }
  // All records of an opening that succeeds.
  static std::unique_ptr<Dataset> All(const std::shared_ptr<const FileRecords>& records) {
    return NewFileDataset(records, 0, records->size());
  }

  MemoryFileSystem files_;
};

TEST_F(FileRecordsTest, RecordsOfSeveralFilesInAnyOrder) {
  files_.SetContent("/a", "0 1:1\n1\n2");
  files_.SetContent("/b", "3\n");
  files_.SetContent("/c", "4\r\n5 7:2 8:3\r\n");
  const auto records = Open({"/a", "/b", "/c"});
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ((*records)->where(), "/a and 2 more");
  const auto dataset = All(*records);
  EXPECT_THAT(Labels(*dataset), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Labels(*dataset, {5, 0, 3, 3, 4}), ElementsAre(5, 0, 3, 3, 4));
  const auto part = NewFileDataset(*records, 2, 5);
  EXPECT_EQ(part->num_records(), 3);
  EXPECT_THAT(Labels(*part), ElementsAre(2, 3, 4));
  Batch batch;
  EXPECT_EQ(part->Read(std::vector<int64_t>{3}, &batch).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(part->Read(std::vector<int64_t>{-1}, &batch).code(), absl::StatusCode::kOutOfRange);
}

// Has one column, "bytes".
class BytesFormat : public RecordFormat {
 public:
  BytesFormat() : RecordFormat(kBagSchema) {}

  uint64_t fingerprint() const override { return 1; }
  bool Parse(absl::string_view bytes, int64_t, Batch*, RecordError* error) const override {
    *error = {1, "more", "none"};
    return bytes != "bad";
  }
  RecordColumns Columns(absl::string_view bytes) const override {
    return {{"bytes", {std::string(bytes)}}};
  }
};

TEST_F(FileRecordsTest, TheColumnsOfARecord) {
  files_.SetContent("/a", "a\nb\nbad\n");
  files_.SetContent("/b", "c\n");
  const auto records = FileRecords::Open({"/a", "/b"}, std::make_unique<BytesFormat>(), 1, &files_);
  ASSERT_TRUE(records.ok()) << records.status();
  const auto dataset = NewFileDataset(*records, 1, 3);
  EXPECT_THAT(dataset->ReadColumns(0)->front().values, ElementsAre("b"));
  EXPECT_THAT(dataset->ReadColumns(1)->front().values, ElementsAre("c"));
  EXPECT_EQ(dataset->ReadColumns(2).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(dataset->ReadColumns(-1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*records)->ReadColumns(3).status().code(), absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(files_.CreateDirectories("/later").ok());
  files_.SetContent("/b", "d\n");
  EXPECT_EQ(dataset->ReadColumns(1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(FileRecordsTest, AFormatWithoutColumnsHasNone) {
  files_.SetContent("/a", "0 1:1\n");
  EXPECT_THAT(*All(*Open({"/a"}))->ReadColumns(0), testing::IsEmpty());
}

TEST_F(FileRecordsTest, ABatchThatIsReadAgainHasNothingOfBefore) {
  files_.SetContent("/a", "0 1:1 2:2\n1 3:3\n");
  const auto dataset = All(*Open({"/a"}));
  Batch batch;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(dataset->Read({{1, 0}}, &batch).ok());
    EXPECT_THAT(batch.features[0].ids, ElementsAre(3, 1, 2));
    EXPECT_THAT(batch.features[0].weights, ElementsAre(3, 1, 2));
    EXPECT_THAT(batch.features[0].offsets, ElementsAre(0, 1, 3));
  }
}

TEST_F(FileRecordsTest, ABadLineIsAnErrorWhenItIsRead) {
  files_.SetContent("/a", "0\n1 1:1\n2 1:x\n");
  const auto dataset = All(*Open({"/a"}));
  EXPECT_THAT(Labels(*dataset, {0, 1}), ElementsAre(0, 1));
  Batch batch;
  EXPECT_EQ(
      dataset->Read({{0, 2}}, &batch),
      absl::InvalidArgumentError("/a:3:5: expected a finite number as the value, found \"x\""));
}

TEST_F(FileRecordsTest, AFileOfAnotherFormatIsAnErrorAtOnce) {
  files_.SetContent("/a", "0\n");
  files_.SetContent("/b", "label,features\n1,2\n");
  EXPECT_EQ(Open({"/a", "/b"}).status(),
            absl::InvalidArgumentError("/b:1:1: expected a label, found \"label,features\""));
}

TEST_F(FileRecordsTest, BadRecordsAreLeftOut) {
  // Bad: 0, 3, 4, 20, 39.
  std::string content;
  std::vector<float> good;
  for (int i = 0; i < 40; ++i) {
    const bool bad = i == 0 || i == 3 || i == 4 || i == 20 || i == 39;
    absl::StrAppend(&content, i, bad ? " 1:1 x\n" : " 1:1\n");
    if (!bad) good.push_back(static_cast<float>(i));
  }
  files_.SetContent("/a", content);
  files_.SetContent("/b", "40\nx\n41\n");
  good.push_back(40);
  good.push_back(41);
  const auto records = Open({"/a", "/b"}, 6);
  ASSERT_TRUE(records.ok()) << records.status();
  const auto dataset = All(*records);
  EXPECT_EQ(Labels(*dataset), good);
  EXPECT_THAT(Labels(*dataset, {34, 0, 36, 18}),
              ElementsAre(good[34], good[0], good[36], good[18]));
}

TEST_F(FileRecordsTest, OneBadRecordMoreIsAnError) {
  files_.SetContent("/a", "0\nx\n1\n");
  files_.SetContent("/b", "2\n3\ny\n");
  EXPECT_TRUE(Open({"/a", "/b"}, 2).ok());
  EXPECT_EQ(Open({"/a", "/b"}, 1).status(),
            absl::InvalidArgumentError("/b:3:1: expected a label, found \"y\"; it is one bad "
                                       "record more than data.max_bad_records (1)"));
}

// Lines of a number, as the one number and the label; the first line is "number".
class HeadedFormat : public RecordFormat {
 public:
  HeadedFormat() : RecordFormat({{{"number", Shape({1})}}, {{"label", 0}}}) {}

  uint64_t fingerprint() const override { return 1; }
  bool has_header() const override { return true; }
  bool CheckHeader(absl::string_view line, RecordError* error) const override {
    *error = {1, "number", std::string(line)};
    return line == "number";
  }
  bool Parse(absl::string_view line, int64_t row, Batch* batch, RecordError* error) const override {
    *error = {1, "a number", std::string(line)};
    return absl::SimpleAtof(line, batch->labels[0].data() + row);
  }
};

TEST_F(FileRecordsTest, HeadersAreNoRecords) {
  files_.SetContent("/a", "number\n0\n1\n2\n");
  files_.SetContent("/b", "number\n");
  files_.SetContent("/c", "number\n3\n4");
  for (const int64_t max_bad_records : {0, 1}) {
    const auto records = FileRecords::Open({"/a", "/b", "/c"}, std::make_unique<HeadedFormat>(),
                                           max_bad_records, &files_);
    ASSERT_TRUE(records.ok()) << records.status();
    EXPECT_THAT(Labels(*All(*records)), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(Labels(*All(*records), {4, 0, 3}), ElementsAre(4, 0, 3));
  }
}

TEST_F(FileRecordsTest, ErrorsBehindAHeader) {
  const auto open = [&](const std::string& content, int64_t max_bad_records) {
    files_.SetContent("/a", content);
    return FileRecords::Open({"/a"}, std::make_unique<HeadedFormat>(), max_bad_records, &files_);
  };
  EXPECT_EQ(open("0\n1\n", 0).status(),
            absl::InvalidArgumentError("/a:1:1: expected number, found 0"));
  EXPECT_EQ(open("0\n1\n", 1).status(),
            absl::InvalidArgumentError("/a:1:1: expected number, found 0"));
  EXPECT_EQ(open("number\nx\n1\n", 0).status(),
            absl::InvalidArgumentError("/a:2:1: expected a number, found x"));
  const auto left_out = open("number\n0\nx\n1\ny\n2\n", 2);
  ASSERT_TRUE(left_out.ok()) << left_out.status();
  EXPECT_THAT(Labels(*All(*left_out)), ElementsAre(0, 1, 2));
  EXPECT_THAT(std::string(open("number\n0\nx\n1\ny\n2\n", 1).status().message()),
              HasSubstr("/a:5:1: expected a number, found y; it is one bad record more than"));
}

TEST_F(FileRecordsTest, AFileThatChangesIsAnError) {
  files_.SetContent("/a", "0\n1\n");
  const auto dataset = All(*Open({"/a"}));
  EXPECT_THAT(Labels(*dataset), ElementsAre(0, 1));
  ASSERT_TRUE(files_.CreateDirectories("/later").ok());
  files_.SetContent("/a", "5\n6\n");
  Batch batch;
  const absl::Status status = dataset->Read(std::vector<int64_t>{0}, &batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/a: expected the file as it was"));
}

TEST_F(FileRecordsTest, FilesThatAreNotReadMayChange) {
  files_.SetContent("/a", "0\n");
  files_.SetContent("/b", "1\n");
  const auto dataset = All(*Open({"/a", "/b"}));
  ASSERT_TRUE(files_.CreateDirectories("/later").ok());
  files_.SetContent("/b", "7\n");
  EXPECT_THAT(Labels(*dataset, {0}), ElementsAre(0));
}

}  // namespace
}  // namespace keelson
