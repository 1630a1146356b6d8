#include "core/data/block_records.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

const RecordSchema kBlockSchema = {
    {{"age", Shape({1})}, {"seen", {}, FeatureKind::kBag}, {"city", {}, FeatureKind::kBag}},
    {{"label", 0}}};

std::shared_ptr<const RecordMaker> Maker() {
  v1::DataConfig data;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "tf_record {} features { name: 'seen' columns { integer {} } }"
      "features { name: 'city' columns { vocabulary { values: ['a', 'b', 'c'] } } }",
      &data));
  MemoryFileSystem files;
  auto maker = RecordMaker::Create(data, kBlockSchema, &files);
  EXPECT_TRUE(maker.ok()) << maker.status();
  return *std::move(maker);
}

// Blocks of ten records: record n of the file has the age `first` + n, the ids from 0 to below n %
// 3, a city of "a", "b" and none, and as its label the age, but for number `bad`, which has none.
class FakeFile : public BlockFile {
 public:
  FakeFile(std::string path, int64_t first, size_t blocks, bool whole = false, int64_t bad = -1)
      : path_(std::move(path)), first_(first), blocks_(blocks), whole_(whole), bad_(bad) {}

  const std::string& path() const override { return path_; }
  std::vector<int64_t> block_records() const override {
    return std::vector<int64_t>(blocks_, kRecords);
  }
  absl::StatusOr<std::shared_ptr<const ColumnBlock>> Read(size_t block) const override {
    ++reads_;
    auto read = std::make_shared<ColumnBlock>();
    read->records = kRecords;
    read->columns = {
        BlockColumn(whole_ ? ColumnValue::Kind::kIntegers : ColumnValue::Kind::kNumbers),
        BlockColumn(ColumnValue::Kind::kIntegers), BlockColumn(ColumnValue::Kind::kTexts),
        BlockColumn(ColumnValue::Kind::kNumbers)};
    std::vector<float> labels;
    for (int64_t n = static_cast<int64_t>(block) * kRecords, k = 0; k < kRecords; ++k, ++n) {
      if (whole_) {
        read->columns[0].Add(first_ + n);
      } else {
        read->columns[0].Add(static_cast<float>(first_ + n));
      }
      for (int64_t id = 0; id < n % 3; ++id) read->columns[1].Add(id);
      if (n % 3 < 2) read->columns[2].Add(absl::string_view(n % 3 == 0 ? "a" : "b"));
      if (n != bad_) read->columns[3].Add(static_cast<float>(first_ + n));
      for (BlockColumn& column : read->columns) column.EndRecord();
    }
    for (BlockColumn& column : read->columns) column.Finish();
    return read;
  }
  absl::Status CheckUnchanged() const override { return unchanged_; }

  int reads() const { return reads_; }
  void Change() { unchanged_ = absl::FailedPreconditionError("changed"); }

 private:
  static constexpr int64_t kRecords = 10;

  const std::string path_;
  const int64_t first_;
  const size_t blocks_;
  const bool whole_;
  const int64_t bad_;
  absl::Status unchanged_;
  mutable std::atomic<int> reads_{0};
};

struct TwoFiles {
  explicit TwoFiles(int64_t bad = -1) {
    files.push_back(std::make_unique<FakeFile>("/a", 0, 3));
    files.push_back(std::make_unique<FakeFile>("/b", 30, 2, /*whole=*/true, bad));
    a = static_cast<FakeFile*>(files[0].get());
    b = static_cast<FakeFile*>(files[1].get());
  }
  std::vector<std::unique_ptr<BlockFile>> files;
  FakeFile* a;
  FakeFile* b;
};

TEST(BlockRecordsTest, RecordsOfAllBlocksInAnyOrder) {
  TwoFiles two;
  const auto records = OpenBlockRecords(std::move(two.files), Maker(), 0);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ((*records)->size(), 50);
  EXPECT_EQ((*records)->where(), "/a and 1 more");
  Batch batch;
  ASSERT_TRUE((*records)->Read({49, 2, 31, 0, 29, 2}, &batch).ok());
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(49, 2, 31, 0, 29, 2));
  EXPECT_THAT(batch.features[1].ids, ElementsAre(0, 0, 1, 0, 0, 1, 0, 1));
  EXPECT_THAT(batch.features[1].offsets, ElementsAre(0, 1, 3, 4, 4, 6, 8));
  EXPECT_THAT(batch.features[2].ids, ElementsAre(1, 1, 0));
  EXPECT_THAT(batch.features[2].offsets, ElementsAre(0, 1, 1, 2, 3, 3, 3));
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(49, 2, 31, 0, 29, 2));
  ASSERT_TRUE((*records)->Read({12, 11}, &batch).ok());  // of one block
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(12, 11));
  ASSERT_TRUE((*records)->Read({}, &batch).ok());
  EXPECT_EQ((*records)->Read({50}, &batch).code(), absl::StatusCode::kOutOfRange);
}

TEST(BlockRecordsTest, TheColumnsOfARecord) {
  TwoFiles two(/*bad=*/12);
  FakeFile* const b = two.b;
  const auto records = OpenBlockRecords(std::move(two.files), Maker(), /*max_bad_records=*/1);
  ASSERT_TRUE(records.ok()) << records.status();
  const RecordColumns columns = *(*records)->ReadColumns(31);
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_EQ(columns[0].name, "age");
  EXPECT_THAT(columns[0].values, ElementsAre("31"));
  EXPECT_THAT(columns[1].values, ElementsAre("0"));
  EXPECT_THAT(columns[2].values, ElementsAre("b"));
  // Record 42 is left out.
  EXPECT_THAT((*(*records)->ReadColumns(42))[0].values, ElementsAre("43"));
  EXPECT_EQ((*records)->ReadColumns(49).status().code(), absl::StatusCode::kOutOfRange);
  b->Change();
  EXPECT_EQ((*records)->ReadColumns(31).status().message(), "changed");
}

TEST(BlockRecordsTest, BlocksAreKeptAsFarAsThereIsRoom) {
  TwoFiles all, few;
  const FakeFile* const kept = all.a;
  const FakeFile* const dropped = few.a;
  const auto with_room = OpenBlockRecords(std::move(all.files), Maker(), 0);
  const auto without = OpenBlockRecords(std::move(few.files), Maker(), 0, /*cache_bytes=*/1);
  ASSERT_TRUE(with_room.ok() && without.ok());
  Batch batch;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*with_room)->Read({25, 0, 15, 1}, &batch).ok());
    ASSERT_TRUE((*without)->Read({25, 0, 15, 1}, &batch).ok());
    EXPECT_THAT(batch.labels[0].span(), ElementsAre(25, 0, 15, 1));
  }
  EXPECT_EQ(kept->reads(), 3);
  // One to try the first record, and of each batch one of each block.
  EXPECT_EQ(dropped->reads(), 1 + 3 * 3);
}

TEST(BlockRecordsTest, RecordsThatAreNone) {
  constexpr char kBadRecord[] =
      "/b: record 13: expected a label in the column \"label\", found nothing";
  TwoFiles strict(12);
  const auto records = OpenBlockRecords(std::move(strict.files), Maker(), 0);
  ASSERT_TRUE(records.ok()) << records.status();
  Batch batch;
  EXPECT_EQ((*records)->Read({3, 42}, &batch).message(), kBadRecord);
  TwoFiles tolerant(12);
  const auto others = OpenBlockRecords(std::move(tolerant.files), Maker(), 1);
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ((*others)->size(), 49);
  ASSERT_TRUE((*others)->Read({41, 42, 48}, &batch).ok());
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(41, 43, 49));
  TwoFiles first(0);
  EXPECT_EQ(OpenBlockRecords(std::move(first.files), Maker(), 0).status().message(),
            "/b: record 1: expected a label in the column \"label\", found nothing");
  std::vector<std::unique_ptr<BlockFile>> two_bad;
  two_bad.push_back(std::make_unique<FakeFile>("/a", 0, 1, false, 5));
  two_bad.push_back(std::make_unique<FakeFile>("/b", 0, 2, false, 12));
  EXPECT_EQ(OpenBlockRecords(std::move(two_bad), Maker(), 1).status().message(),
            absl::StrCat(kBadRecord, "; it is one bad record more than data.max_bad_records (1)"));
}

TEST(BlockRecordsTest, FilesThatChangeOrHaveNothing) {
  TwoFiles two;
  FakeFile* const changed = two.b;
  const auto records = OpenBlockRecords(std::move(two.files), Maker(), 0);
  ASSERT_TRUE(records.ok());
  changed->Change();
  Batch batch;
  EXPECT_TRUE((*records)->Read({1}, &batch).ok());
  EXPECT_EQ((*records)->Read({1, 40}, &batch).message(), "changed");
  std::vector<std::unique_ptr<BlockFile>> none;
  none.push_back(std::make_unique<FakeFile>("/none", 0, 0));
  EXPECT_EQ(OpenBlockRecords(std::move(none), Maker(), 0).status().message(),
            "/none: expected one record or more, found none");
}

}  // namespace
}  // namespace keelson
