#include "evaluator/item_records.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/columnar_records.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

const RecordSchema kPairSchema = {{{"user", {}, FeatureKind::kId}, {"item", {}, FeatureKind::kId}},
                                  {{"chosen", 0}}};

// Of each record the item that is given; the user is the record's number.
class Choices : public Dataset {
 public:
  explicit Choices(std::vector<uint64_t> items) : items_(std::move(items)) {}

  int64_t num_records() const override { return static_cast<int64_t>(items_.size()); }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    Resize(static_cast<int64_t>(records.size()), kPairSchema, batch);
    for (size_t i = 0; i < records.size(); ++i) {
      if (items_[records[i]] == 0) return absl::DataLossError("record gone");
      batch->features[0].ids[i] = static_cast<uint64_t>(records[i]);
      batch->features[1].ids[i] = items_[records[i]];
      batch->labels[0].data()[i] = 1;
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<uint64_t> items_;
};

class ItemRecordsTest : public testing::Test {
 protected:
  ItemRecordsTest() { EXPECT_TRUE(CreateDirectories(model_dir_ + "/eval").ok()); }

  absl::Status Write(const std::vector<uint64_t>& items, int64_t count) {
    return WriteItemRecords(model_dir_, Choices(items), count, kPairSchema, 1);
  }
  // The users and items in the file.
  Batch Stored() const {
    Batch batch;
    const auto records =
        OpenColumnarRecords({model_dir_ + "/eval/items.columnar"}, kPairSchema, FileSystem::Real());
    EXPECT_TRUE(records.ok()) << records.status();
    if (!records.ok()) return batch;
    std::vector<int64_t> all;
    for (int64_t i = 0; i < (*records)->size(); ++i) all.push_back(i);
    EXPECT_TRUE((*records)->Read(all, &batch).ok());
    return batch;
  }

  const std::string model_dir_ = FreshDirectory();
};

TEST_F(ItemRecordsTest, TheFirstRecordOfEachItem) {
  ASSERT_TRUE(Write({7, 5, 7, 9, 5, 8}, 5).ok());
  const Batch stored = Stored();
  EXPECT_THAT(stored.features[0].ids, ElementsAre(0, 1, 3));
  EXPECT_THAT(stored.features[1].ids, ElementsAre(7, 5, 9));
}

TEST_F(ItemRecordsTest, AnEarlierFileIsReplaced) {
  ASSERT_TRUE(Write({7, 5}, 2).ok());
  ASSERT_TRUE(Write({3}, 1).ok());
  EXPECT_THAT(Stored().features[1].ids, ElementsAre(3));
}

TEST_F(ItemRecordsTest, AFewItemsOfMany) {
  std::vector<uint64_t> items;
  for (uint64_t id = 1; id <= kMostItems + 5; ++id) items.push_back(id);
  ASSERT_TRUE(Write(items, static_cast<int64_t>(items.size())).ok());
  const Batch stored = Stored();
  EXPECT_EQ(stored.size(), static_cast<int64_t>(kMostItems));
  EXPECT_EQ(stored.features[1].ids.back(), kMostItems);
}

TEST_F(ItemRecordsTest, ARecordThatCannotBeRead) {
  ASSERT_TRUE(Write({7}, 1).ok());
  EXPECT_EQ(Write({7, 0}, 2).message(), "record gone");
  EXPECT_THAT(Stored().features[1].ids, ElementsAre(7));
}

}  // namespace
}  // namespace keelson
