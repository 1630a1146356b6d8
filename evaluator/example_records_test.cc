#include "evaluator/example_records.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

const RecordSchema kIdSchema = {{{"user", {}, FeatureKind::kId},
                                 {"seen", {}, FeatureKind::kBag, /*weighted=*/true},
                                 {"price", Shape({2})}},
                                {{"clicked", 2}}};

// Of record n the user 2^63 + n, items from 0 to below n with the weight 0.1, and the label 1.
class Visits : public Dataset {
 public:
  explicit Visits(int64_t num_records) : num_records_(num_records) {}

  int64_t num_records() const override { return num_records_; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    Resize(1, kIdSchema, batch);
    const int64_t n = records.front();
    batch->features[0].ids = {(uint64_t{1} << 63) + static_cast<uint64_t>(n)};
    for (int64_t id = 0; id < n; ++id) {
      batch->features[1].ids.push_back(static_cast<uint64_t>(id));
      batch->features[1].weights.push_back(0.1f);
    }
    batch->features[1].offsets = {0, n};
    batch->features[2].numbers.data()[0] = 0.3f;
    batch->features[2].numbers.data()[1] = -2;
    batch->labels[0].data()[0] = 1;
    return absl::OkStatus();
  }

 private:
  const int64_t num_records_;
};

// Records of a file with columns.
class Rows : public Dataset {
 public:
  explicit Rows(std::vector<RecordColumns> rows) : rows_(std::move(rows)) {}

  int64_t num_records() const override { return static_cast<int64_t>(rows_.size()); }
  absl::Status Read(absl::Span<const int64_t>, Batch*) const override {
    return absl::InternalError("not as features");
  }
  absl::StatusOr<RecordColumns> ReadColumns(int64_t record) const override {
    if (rows_[record].empty()) return absl::DataLossError("gone");
    return rows_[record];
  }

 private:
  const std::vector<RecordColumns> rows_;
};

TEST(ExampleRecordsTest, FeaturesAsARequestHasThem) {
  EXPECT_EQ(*FormatExamples(Visits(2), kIdSchema),
            R"({"records":[{"record":0,"features":{"user":"9223372036854775808",)"
            R"("seen":{"ids":[],"weights":[]},"price":[0.3,-2.0]},"labels":{"clicked":1.0}},)"
            R"({"record":1,"features":{"user":"9223372036854775809",)"
            R"("seen":{"ids":["0"],"weights":[0.1]},"price":[0.3,-2.0]},)"
            R"("labels":{"clicked":1.0}}]})"
            "\n");
}

TEST(ExampleRecordsTest, ColumnsAsTexts) {
  const RecordColumns row = {{"age", {"39"}}, {"tags", {"a", "b"}}, {"bought", {}}};
  EXPECT_EQ(*FormatExamples(Rows({row}), kIdSchema),
            R"({"records":[{"record":0,"columns":{"age":["39"],"tags":["a","b"],"bought":[]}}]})"
            "\n");
}

TEST(ExampleRecordsTest, AFewOfManyRecords) {
  const std::string text = *FormatExamples(Visits(80), kIdSchema);
  for (int n = 0; n < 80; ++n) {
    EXPECT_EQ(text.find(absl::StrCat("\"record\":", n, ",")) != std::string::npos, n % 10 == 0)
        << n;
  }
}

TEST(ExampleRecordsTest, WhatIsLeftOut) {
  constexpr char kNone[] = "{\"records\":[]}\n";
  const RecordColumns long_row = {{"text", {std::string(kMaxExampleBytes, 'x')}}};
  EXPECT_EQ(*FormatExamples(Rows({long_row}), kIdSchema), kNone);
  const RecordSchema images = {{{"features", Shape({2})}}, {{"label", 2}}};
  EXPECT_EQ(*FormatExamples(Visits(2), images), kNone);
}

TEST(ExampleRecordsTest, BytesThatAreNotUtf8AreReplaced) {
  const RecordColumns row = {{"text", {"\xff"}}};
  EXPECT_THAT(*FormatExamples(Rows({row}), kIdSchema), HasSubstr("\xef\xbf\xbd"));
}

TEST(ExampleRecordsTest, TheFileAndWhatKeepsItFromBeingWritten) {
  const std::string model_dir = FreshDirectory();
  ASSERT_TRUE(CreateDirectories(model_dir + "/eval").ok());
  const absl::Status status = WriteExamples(model_dir, Visits(1), kIdSchema);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(*ReadFile(model_dir + "/eval/examples.json"), HasSubstr("\"record\":0"));
  EXPECT_EQ(WriteExamples(model_dir, Rows({RecordColumns()}), kIdSchema).message(), "gone");
  EXPECT_THAT(*ReadFile(model_dir + "/eval/examples.json"), HasSubstr("\"record\":0"));
}

}  // namespace
}  // namespace keelson
