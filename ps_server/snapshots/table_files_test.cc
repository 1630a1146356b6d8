#include "ps_server/snapshots/table_files.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/stored_rows.h"
#include "core/checkpoint/table_testing.h"
#include "gmock/gmock.h"
#include "ps_server/service/row_messages_testing.h"
#include "ps_server/snapshots/shard_files.h"
#include "ps_server/snapshots/table_files_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TableOptimizerFilesTest : public TableFilesTest,
                                public testing::WithParamInterface<const char*> {};

TEST_P(TableOptimizerFilesTest, RowsAndSlotsComeBackOnAnyNumberOfServers) {
  const std::string optimizer = ForTables(GetParam());
  for (const size_t shards : {2, 3}) {
    const TableShards stores = NewShards(TestTablePlacement(shards), optimizer);
    PushToAll(stores, 1, SpreadIds(0, 700));
    PushToAll(stores, 4, SpreadIds(300, 700));
    Write(stores);
    const TableContents at_snapshot = ContentsOf(stores);
    ASSERT_EQ(at_snapshot[0].size(), 1000u);
    PushToAll(stores, 9, SpreadIds(600, 700));
    const TableContents one_step_on = ContentsOf(stores);
    for (const size_t others : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(shards, " shards restored on ", others));
      const TableShards restored = RestoreAll(others, optimizer);
      EXPECT_EQ(ContentsOf(restored), at_snapshot);
      for (const auto& store : restored) EXPECT_EQ(store->tables()->steps_done(), 5);
      PushToAll(restored, 9, SpreadIds(600, 700));
      EXPECT_EQ(ContentsOf(restored), one_step_on);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, TableOptimizerFilesTest,
                         testing::Values("sgd {}", "momentum {}", "adagrad {}",
                                         "row_wise_adagrad {}", "adam {}", "adam { exact: true }",
                                         "adamw {}", "ftrl { l1: 0.1 }"));

// Users get rows with their third push, wherever they were counted.
TEST_F(TableFilesTest, CountsOfIdsComeBackOnAnyNumberOfServers) {
  const std::string optimizer = ForTables("adagrad {}");
  const auto placement = [](size_t shards) {
    std::vector<TableSpec> tables = TestTables();
    tables[1].admit_after = 3;
    return Placement::Compute(TestVariables(), shards, 1000, tables);
  };
  const TableShards two = NewShards(placement(2), optimizer);
  PushToAll(two, 1, SpreadIds(0, 600));
  PushToAll(two, 2, SpreadIds(0, 300));
  Write(two);
  const TableShards three = RestoreAll(placement(3), optimizer);
  const TableContents counted = ContentsOf(three);
  EXPECT_EQ(counted, ContentsOf(two));
  EXPECT_THAT(counted[1], IsEmpty());
  ASSERT_EQ(counted[2].size(), 600u);
  for (const auto& [id, ghost] : counted[2]) EXPECT_EQ(ghost.updates, ghost.last_step) << id;
  PushToAll(three, 3, SpreadIds(0, 600));
  EXPECT_EQ(ContentsOf(three)[1].size(), 300u);
  EXPECT_EQ(ContentsOf(three)[2].size(), 300u);
  Write(three);
  const TableShards one = RestoreAll(placement(1), optimizer);
  EXPECT_EQ(ContentsOf(one), ContentsOf(three));
  PushToAll(one, 4, SpreadIds(0, 700));
  EXPECT_EQ(ContentsOf(one)[1].size(), 600u);
  EXPECT_EQ(ContentsOf(one)[2].size(), 100u);
}

TEST_F(TableFilesTest, AdmissionMayBeginAndEndWithARestore) {
  const std::string optimizer = ForTables("sgd {}");
  std::vector<TableSpec> tables = TestTables();
  tables[1].admit_after = 2;
  const Placement counting = Placement::Compute(TestVariables(), 1, 1000, tables);
  const TableShards before = NewShards(TestTablePlacement(2), optimizer);
  PushToAll(before, 1, SpreadIds(0, 10));
  Write(before);
  const TableShards counts = RestoreAll(counting, optimizer);
  PushToAll(counts, 2, SpreadIds(0, 20));
  EXPECT_EQ(ContentsOf(counts)[1].size(), 10u);
  EXPECT_EQ(ContentsOf(counts)[2].size(), 10u);
  Write(counts);
  const TableShards after = RestoreAll(2, optimizer);
  EXPECT_EQ(ContentsOf(after).size(), 2u);
  EXPECT_EQ(ContentsOf(after)[1].size(), 10u);
}

TEST_F(TableFilesTest, FilesDoNotDependOnTheOrderInWhichRowsWereMade) {
  std::vector<uint64_t> ids = SpreadIds(0, 3000);
  std::string files[2];
  for (std::string& file : files) {
    const TableShards stores = NewShards(TestTablePlacement(1), ForTables("adagrad {}"));
    const size_t half = ids.size() / 2;
    const auto gradient = [](uint64_t id) { return static_cast<float>(id % 5); };
    // In two pushes of one step, for a message brings ids in order.
    PushRows(stores[0].get(), 1, 3, {ids.begin(), ids.begin() + half}, gradient);
    PushRows(stores[0].get(), 2, 3, {ids.begin() + half, ids.end()}, gradient);
    Write(stores);
    file = DataFile(0, 1);
    std::reverse(ids.begin(), ids.end());
  }
  EXPECT_EQ(files[0].size(), files[1].size());
  EXPECT_TRUE(files[0] == files[1]);
}

// Each push takes 1 off every row, so rows of one instant have equal values and equally many
// updates, and no push is in a part of them only.
TEST_F(TableFilesTest, ACutUnderConcurrentPushesIsOneInstant) {
  const std::string optimizer = ForTables("sgd {}");
  const TableShards stores = NewShards(TestTablePlacement(2), optimizer);
  const std::vector<uint64_t> ids = SpreadIds(0, 500);
  constexpr uint64_t kNewRows = 1'000'000;
  const auto one = [](uint64_t) { return 1.0f; };
  for (const auto& store : stores) PushRows(store.get(), 1, 1, ids, one);
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (const auto& store : stores) {
    workers.emplace_back([&, store = store.get()] {
      for (uint64_t sequence = 2; !stop; ++sequence) {
        // New rows come meanwhile.
        std::vector<uint64_t> all = ids;
        all.push_back(kNewRows + sequence);
        PushRows(store, sequence, static_cast<int64_t>(sequence), all, one);
      }
    });
  }
  for (int snapshot = 0; snapshot < 5; ++snapshot) {
    std::vector<ShardCut> cuts;
    for (const auto& store : stores) cuts.push_back(store->Cut());
    WriteCuts(stores, cuts);
    TableShards restored = RestoreAll(2, optimizer);
    for (size_t s = 0; s < restored.size(); ++s) {
      const int64_t pushes = cuts[s].shard_step;
      EXPECT_EQ(restored[s]->shard_step(), pushes);
      TableShards one_shard;
      one_shard.push_back(std::move(restored[s]));
      const TableContents contents = ContentsOf(one_shard);
      const auto updates_of = [&](uint64_t id) {
        return id >= kNewRows && id <= kNewRows + static_cast<uint64_t>(pushes) ? 1 : pushes;
      };
      for (const auto& [id, row] : contents[0]) EXPECT_EQ(row.updates, updates_of(id)) << id;
      for (const auto& [id, row] : contents[1]) {
        EXPECT_EQ(row.updates, updates_of(id)) << id;
        EXPECT_EQ(row.values[0], static_cast<float>(-updates_of(id))) << id;
      }
      EXPECT_GE(contents[1].size(), 200u);
    }
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
}

TEST_F(TableFilesTest, WhatIsWrittenIsNotKeptAnyMore) {
  const TableShards stores = NewShards(TestTablePlacement(1), ForTables("sgd {}"));
  PushToAll(stores, 1, SpreadIds(0, 2000));
  const auto bytes = [&] {
    int64_t sum = 0;
    for (const TableSize& size : stores[0]->tables()->Sizes()) sum += size.bytes;
    return sum;
  };
  const int64_t before = bytes();
  std::vector<ShardCut> cuts;
  cuts.push_back(stores[0]->Cut());
  PushToAll(stores, 2, SpreadIds(0, 2000));
  EXPECT_GT(bytes(), before);
  WriteCuts(stores, cuts);
  EXPECT_EQ(bytes(), before);
}

TEST_F(TableFilesTest, ACutThatAnotherOneHasReplacedIsNotWritten) {
  const TableShards stores = NewShards(TestTablePlacement(1), ForTables("sgd {}"));
  PushToAll(stores, 1, SpreadIds(0, 10));
  const ShardCut first = stores[0]->Cut();
  const ShardCut second = stores[0]->Cut();
  auto writer = BundleDataWriter::Create(&files_, DataPath(kTablePrefix, 0, 1), 0);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(WriteShard(*stores[0], first, PlacesOf({first}, 2)[0], writer->get()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(TableFilesTest, EachServerReadsItsShare) {
  const std::string optimizer = ForTables("adagrad {}");
  const TableShards stores = NewShards(TestTablePlacement(2), optimizer);
  PushToAll(stores, 1, SpreadIds(0, 30'000));
  Write(stores);
  const int64_t all = static_cast<int64_t>(DataFile(0, 2).size() + DataFile(1, 2).size());
  const Placement placement = TestTablePlacement(3);
  // Of the variables, a server may have to verify slices of which it takes a part.
  const int64_t dense = 2 * 4 * 16'000;
  for (size_t s = 0; s < 3; ++s) {
    const int64_t before = files_.bytes();
    ASSERT_TRUE(Restore(placement, s, optimizer).ok());
    const int64_t index =
        static_cast<int64_t>((*files_.OpenForRead(IndexPath(kTablePrefix)))->size());
    EXPECT_LT(files_.bytes() - before - index, all / 3 * 105 / 100 + dense);
  }
}

// As an evaluator does, which needs the rows of its batches alone.
TEST_F(TableFilesTest, WhoLooksAFewRowsUpReadsAFewSlices) {
  const TableShards stores = NewShards(TestTablePlacement(2), ForTables("adagrad {}"));
  PushToAll(stores, 1, SpreadIds(0, 50'000));
  Write(stores);
  const auto size = [&](size_t shard) { return static_cast<int64_t>(DataFile(shard, 2).size()); };
  const int64_t all = size(0) + size(1);
  const auto rows = StoredRows::Open(kTablePrefix, &files_);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const int64_t before = files_.bytes();
  RowMatrix found;
  ASSERT_EQ((*rows)->Read(*(*rows)->tables().Find("items"), {0, ~uint64_t{1}, 2}, {}, &found),
            absl::OkStatus());
  EXPECT_EQ(found.present, std::vector<bool>({true, true, true}));
  EXPECT_LT(files_.bytes() - before, all / 50);
}

TEST_F(TableFilesTest, ATableThatIsNewToASnapshotStartsWithoutRows) {
  TableShards stores;
  const Placement dense = TestPlacement(2);
  for (size_t s = 0; s < 2; ++s) {
    stores.push_back(*InitializeShard(StoreOptions(dense, s, "adam {}"), kTestSeed));
  }
  std::vector<BundleIndexEntry> entries;
  for (size_t s = 0; s < 2; ++s) {
    auto writer = BundleDataWriter::Create(&files_, DataPath(kTablePrefix, s, 2), s);
    auto written = WriteShard(*stores[s], stores[s]->Cut(), {}, writer->get());
    ASSERT_TRUE(written.ok()) << written.status();
    std::move(written->entries.begin(), written->entries.end(), std::back_inserter(entries));
  }
  ASSERT_EQ(WriteBundleIndex(&files_, kTablePrefix, 2, std::move(entries)), absl::OkStatus());
  const TableShards restored = RestoreAll(3, "adam {}");
  EXPECT_THAT(ContentsOf(restored)[0], IsEmpty());
  PushToAll(restored, 1, SpreadIds(0, 10));
  EXPECT_EQ(ContentsOf(restored)[0].size(), 10u);
}

TEST_F(TableFilesTest, TablesWithoutRowsAreThereAgain) {
  Write(NewShards(TestTablePlacement(2), "sgd {}"));
  EXPECT_THAT(ContentsOf(RestoreAll(1, "sgd {}")), testing::ElementsAre(IsEmpty(), IsEmpty()));
}

TEST_F(TableFilesTest, ATableThatHasBecomeAnotherIsRefused) {
  const TableShards stores = NewShards(TestTablePlacement(1), "sgd {}");
  PushToAll(stores, 1, SpreadIds(0, 10));
  Write(stores);
  std::vector<TableSpec> tables = TestTables();
  tables[1].dim = 2;
  const Placement other = Placement::Compute(TestVariables(), 1, 1000, tables);
  const absl::Status status = Restore(other, 0, "sgd {}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(": table users: dim: expected 2, found 1"));
}

TEST_F(TableFilesTest, SlotsOfAnotherOptimizerStartAfresh) {
  const TableShards stores = NewShards(TestTablePlacement(1), ForTables("sgd {}"));
  PushToAll(stores, 1, SpreadIds(0, 10));
  Write(stores);
  const TableShards restored = RestoreAll(1, ForTables("adagrad { initial_accumulator: 0.25 }"));
  const TableContents contents = ContentsOf(restored);
  EXPECT_EQ(contents[0].size(), 10u);
  for (const auto& [id, row] : contents[0]) {
    EXPECT_EQ(row.slots[0], std::vector<float>(3, 0.25f));
  }
}

TEST_F(TableFilesTest, WhatPartitionsHaveAppliedIsKept) {
  const TableShards stores = NewShards(TestTablePlacement(2), ForTables("sgd {}"));
  PushToAll(stores, 7, SpreadIds(0, 100));
  Write(stores);
  const TableShards restored = RestoreAll(2, ForTables("sgd {}"));
  const TableContents before = ContentsOf(restored);
  PushToAll(restored, 7, SpreadIds(0, 100));
  EXPECT_EQ(ContentsOf(restored), before);
  PushToAll(restored, 8, SpreadIds(0, 100));
  EXPECT_NE(ContentsOf(restored), before);
}

TEST_F(TableFilesTest, EveryBitIsKept) {
  const TableShards stores = NewShards(TestTablePlacement(1), ForTables("sgd {}"));
  const float odd[] = {std::numeric_limits<float>::denorm_min(), -0.0f, 1e-38f,
                       std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()};
  const uint64_t ids[] = {0, 1, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{1}};
  for (size_t i = 0; i < 5; ++i) {
    TableColumns columns;
    columns.ids = {ids[i]};
    columns.values = {odd[i]};
    columns.last_steps = {std::numeric_limits<uint32_t>::max()};
    columns.updates = {65535};
    const uint32_t p = RowPartitionOf(MixId(ids[i], TableSalt("users")));
    ASSERT_EQ(AddRows(1, p, columns, stores[0]->tables()), absl::OkStatus());
  }
  Write(stores);
  const TableContents contents = ContentsOf(RestoreAll(3, ForTables("sgd {}")));
  for (size_t i = 0; i < 5; ++i) {
    const TestRow& row = contents[1].at(ids[i]);
    EXPECT_EQ(std::memcmp(row.values.data(), &odd[i], sizeof(float)), 0) << odd[i];
    EXPECT_EQ(row.last_step, std::numeric_limits<uint32_t>::max());
    EXPECT_EQ(row.updates, 65535u);
  }
}

TEST_F(TableFilesTest, PlacesThatDoNotFitAreRefused) {
  const TableShards stores = NewShards(TestTablePlacement(1), ForTables("sgd {}"));
  PushToAll(stores, 1, SpreadIds(0, 10));
  const ShardCut cut = stores[0]->Cut();
  const TableStore& tables = *stores[0]->tables();
  EXPECT_EQ(CheckTablePlaces(tables, *cut.tables, {.rows = {{5, 15}, {0, 10}}}), absl::OkStatus());
  EXPECT_EQ(CheckTablePlaces(tables, *cut.tables, {.rows = {{0, 10}}}),
            absl::InvalidArgumentError("tables: expected one for each of the 2 tables, found 1"));
  EXPECT_EQ(
      CheckTablePlaces(tables, *cut.tables, {.rows = {{0, 10}, {1, 10}}}),
      absl::InvalidArgumentError("table users: expected place for 10 rows, found row 1 of 10"));
}

}  // namespace
}  // namespace keelson
