#include "ps_server/units/table_store.h"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "core/base/random.h"
#include "gtest/gtest.h"
#include "ps_server/service/row_messages_testing.h"
#include "ps_server/units/one_table_testing.h"

namespace keelson {
namespace {

// A store of all partitions, with a push that gives every row of table 1 ("users") a gradient.
class TableStoreTest : public testing::Test {
 protected:
  TableStoreTest()
      : optimizers_(*TableOptimizers::Create({OptimizerFromText("sgd {}"), {}, 1}, TestTables())),
        learning_rate_(*LearningRateSchedule::Create(Rate(), 0)),
        store_(*TableStore::Create({TestTables(), {0, kRowPartitions}, kTestSeed, 0}, &optimizers_,
                                   &learning_rate_, &sequences_)) {}

  static v1::LearningRateConfig Rate() {
    v1::LearningRateConfig config;
    config.set_base(1);
    return config;
  }

  // Takes `gradient` off each of the rows.
  void Push(const std::vector<uint64_t>& ids, float gradient) {
    PushToAll(store_.get(), 1, ++sequence_, 0, ids, gradient);
  }

  // The rows of table 1 in the cut, which must come with ascending ids.
  std::map<uint64_t, float> Read(const TableCut& cut, TableCut::Part part = TableCut::Part::kAll) {
    std::map<uint64_t, float> all;
    for (uint32_t p = 0; p < kRowPartitions; ++p) {
      std::vector<uint64_t> ids;
      const absl::Status status = cut.Read(
          p, 1,
          [&](const RowTable&, absl::Span<const RowHeader* const> rows) {
            for (const RowHeader* row : rows) {
              ids.push_back(row->id);
              all[row->id] = row->values()[0];
            }
          },
          [] { return absl::OkStatus(); }, part);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
      EXPECT_EQ(static_cast<int64_t>(ids.size()), cut.Rows(p, 1, part));
    }
    return all;
  }

  const TableOptimizers optimizers_;
  const LearningRateSchedule learning_rate_;
  AppliedSequences sequences_;
  const std::unique_ptr<TableStore> store_;
  uint64_t sequence_ = 0;
};

std::vector<uint64_t> IdsBelow(uint64_t end) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < end; ++id) ids.push_back(Philox(3, 4, id)[0]);
  return ids;
}

TEST_F(TableStoreTest, ACutHasTheRowsAsTheyWere) {
  const std::vector<uint64_t> ids = IdsBelow(3000);
  Push(ids, 1);
  const std::shared_ptr<const TableCut> cut = store_->Cut();
  Push(ids, 2);
  Push(IdsBelow(5000), 4);
  EXPECT_EQ(cut->Rows(1), 3000);
  EXPECT_EQ(cut->Rows(0), 0);
  const std::map<uint64_t, float> rows = Read(*cut);
  EXPECT_EQ(rows.size(), 3000);
  for (const auto& [id, value] : rows) EXPECT_EQ(value, -1) << id;
  EXPECT_EQ(store_->Sizes()[1].rows, 5000);
}

TEST_F(TableStoreTest, ACutTellsWhatHasChangedSinceAnEarlierOne) {
  constexpr TableCut::Part kChanged = TableCut::Part::kChanged;
  Push(IdsBelow(3000), 1);
  const uint64_t first = store_->Cut({.since = 0, .keep = true})->generation();
  Push(IdsBelow(30), 1);
  // Its snapshot fails.
  EXPECT_TRUE(store_->Cut({first, true})->has_changes());
  Push(IdsBelow(3001), 0);
  const std::shared_ptr<const TableCut> all = store_->Cut({first, true});
  EXPECT_EQ(all->Rows(1, kChanged), 3001);
  Push({IdsBelow(50).back()}, 1);
  const std::shared_ptr<const TableCut> cut = store_->Cut({all->generation(), true});
  Push(IdsBelow(70), 1);
  ASSERT_TRUE(cut->has_changes());
  EXPECT_EQ(cut->Rows(1), 3001);
  EXPECT_EQ(cut->Rows(0, kChanged), 0);
  EXPECT_EQ(cut->NumErased(1), 0);
  EXPECT_EQ(Read(*cut, kChanged), (std::map<uint64_t, float>{{IdsBelow(50).back(), -2}}));
  // Before that nothing is known any more, nor is it after a cut from which nothing is kept.
  EXPECT_FALSE(store_->Cut({first, true})->has_changes());
  const uint64_t last = store_->Cut({cut->generation(), false})->generation();
  EXPECT_FALSE(store_->Cut({last, true})->has_changes());
}

TEST_F(TableStoreTest, TheNextCutEndsTheOneBefore) {
  Push(IdsBelow(100), 1);
  const std::shared_ptr<const TableCut> first = store_->Cut();
  const std::shared_ptr<const TableCut> second = store_->Cut();
  const absl::Status status = first->Read(
      0, 1, [](const RowTable&, absl::Span<const RowHeader* const>) {},
      [] { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(Read(*second).size(), 100);
}

TEST_F(TableStoreTest, AnEndedCutKeepsNothing) {
  Push(IdsBelow(100), 1);
  const int64_t before = store_->Sizes()[1].bytes;
  std::shared_ptr<const TableCut> cut = store_->Cut();
  Push(IdsBelow(100), 1);
  EXPECT_GT(store_->Sizes()[1].bytes, before);
  cut = nullptr;
  EXPECT_EQ(store_->Sizes()[1].bytes, before);
}

TEST_F(TableStoreTest, SizesAreToldWhileAPartitionIsLocked) {
  const std::vector<uint64_t> ids = IdsBelow(100);
  Push(ids, 1);
  const std::shared_ptr<const TableCut> cut = store_->Cut();
  const uint32_t partition = RowPartitionOf(MixId(ids[0], TableSalt("users")));
  int64_t rows = 0;
  const absl::Status status = cut->Read(
      partition, 1,
      [&](const RowTable&, absl::Span<const RowHeader* const>) { rows = store_->Sizes()[1].rows; },
      [] { return absl::OkStatus(); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(rows, 100);
}

TEST_F(TableStoreTest, WhoReadsACutMayStop) {
  Push(IdsBelow(100), 1);
  const std::shared_ptr<const TableCut> cut = store_->Cut();
  const absl::Status status = cut->Read(
      0, 1, [](const RowTable&, absl::Span<const RowHeader* const>) {},
      [] { return absl::CancelledError("enough"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(TableStoreTest, CountsTheNewestStepAsDone) {
  EXPECT_EQ(store_->steps_done(), 0);
  store_->UpdateAt(7, 1);
  store_->UpdateAt(3, 1);
  EXPECT_EQ(store_->steps_done(), 8);
  EXPECT_EQ(store_->ReadNow().step, 8);
}

}  // namespace
}  // namespace keelson
