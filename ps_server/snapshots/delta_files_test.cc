// Deltas: snapshots that have what has changed in tables since another one.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/chain_merge.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/snapshot_chain.h"
#include "gmock/gmock.h"
#include "ps_server/snapshots/table_files_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Writes the snapshots of two shards, whose steps are the numbers of the snapshots.
class DeltaFilesTest : public TableFilesTest {
 protected:
  explicit DeltaFilesTest(const Placement& placement = TestTablePlacement(2),
                          const std::string& optimizer = kOptimizer)
      : stores_(NewShards(placement, optimizer)) {
    for (const char* const directory : {"/job/whole", "/job/merged"}) {
      EXPECT_TRUE(files_.CreateDirectories(directory).ok());
    }
  }

  static std::string PrefixOf(int64_t step) { return absl::StrCat("/job/model.ckpt-", step); }
  static v1::SnapshotBase NameOf(int64_t step) {
    v1::SnapshotBase name;
    name.set_step(step);
    name.set_snapshot_id(static_cast<uint64_t>(1000 + step));
    return name;
  }

  // A snapshot, on which the next one may build.
  void WriteWhole(int64_t step) {
    std::vector<ShardCut> cuts;
    for (const auto& store : stores_) cuts.push_back(store->Cut({.since = 0, .keep = true}));
    NoteBase(step, cuts);
    WriteCuts(stores_, cuts, PrefixOf(step), NameOf(step));
  }
  // A delta on the last one that was written.
  void WriteDelta(int64_t step) {
    const std::vector<ShardCut> cuts = CutsSinceBase();
    const v1::SnapshotBase base = NameOf(base_step_);
    NoteBase(step, cuts);
    WriteCuts(stores_, cuts, PrefixOf(step), NameOf(step), base);
  }
  std::vector<ShardCut> CutsSinceBase() {
    std::vector<ShardCut> cuts;
    for (size_t s = 0; s < stores_.size(); ++s) {
      cuts.push_back(stores_[s]->Cut({base_generations_[s], true}));
      EXPECT_TRUE(cuts.back().tables->has_changes());
    }
    return cuts;
  }
  void NoteBase(int64_t step, const std::vector<ShardCut>& cuts) {
    base_step_ = step;
    base_generations_.clear();
    for (const ShardCut& cut : cuts) base_generations_.push_back(cut.tables->generation());
  }

  TableContents Contents() { return ContentsOf(stores_, base_generations_); }

  absl::Status RestoreStatus(int64_t step) {
    return Restore(TestTablePlacement(3), 1, kOptimizer, PrefixOf(step)).status();
  }
  // Of the data files.
  int64_t Bytes(int64_t step) {
    int64_t bytes = 0;
    for (size_t f = 0; f < 3; ++f) {
      bytes += static_cast<int64_t>(Content(DataPath(PrefixOf(step), f, 3)).size());
    }
    return bytes;
  }

  static constexpr char kOptimizer[] = "adagrad {}";
  const TableShards stores_;
  int64_t base_step_ = 0;
  std::vector<uint64_t> base_generations_;
};

TEST_F(DeltaFilesTest, AChainIsRestoredOnAnyNumberOfServers) {
  PushToAll(stores_, 1, SpreadIds(0, 1000));
  WriteWhole(1);
  const TableContents at_1 = Contents();
  PushToAll(stores_, 2, SpreadIds(900, 200));
  WriteDelta(2);
  PushToAll(stores_, 3, SpreadIds(0, 50));
  // A snapshot that fails.
  CutsSinceBase();
  PushToAll(stores_, 4, SpreadIds(1050, 100));
  WriteDelta(3);
  const TableContents at_3 = Contents();
  PushToAll(stores_, 5, SpreadIds(0, 2000));
  for (const size_t shards : {1, 2, 3}) {
    SCOPED_TRACE(shards);
    const TableShards restored = RestoreAll(shards, kOptimizer, PrefixOf(3));
    EXPECT_EQ(ContentsOf(restored), at_3);
    for (const auto& store : restored) EXPECT_EQ(store->tables()->steps_done(), 5);
    EXPECT_EQ(ContentsOf(RestoreAll(shards, kOptimizer, PrefixOf(1))), at_1);
  }
}

class ExpiringDeltaFilesTest : public DeltaFilesTest {
 protected:
  ExpiringDeltaFilesTest() : DeltaFilesTest(PlacementOf(2)) {}

  // Rows of one table expire, those of the other are counted before they are made.
  static Placement PlacementOf(size_t shards) {
    std::vector<TableSpec> tables = TestTables();
    tables[0].admit_after = 2;
    tables[1].expire_after_steps = 4;
    return Placement::Compute(TestVariables(), shards, 1000, tables);
  }
  void PushAndSweep(uint64_t sequence, const std::vector<uint64_t>& ids) {
    PushToAll(stores_, sequence, ids);
    for (const auto& store : stores_) store->tables()->Sweep(100'000);
  }
};

TEST_F(ExpiringDeltaFilesTest, ErasedRowsStayErased) {
  PushAndSweep(1, SpreadIds(0, 1000));
  WriteWhole(1);
  for (uint64_t step = 2; step < 12; ++step) PushAndSweep(step, SpreadIds(0, 300));
  TableContents now = Contents();
  EXPECT_EQ(now[1].size(), 300u);
  EXPECT_EQ(now[0].size(), 300u);
  EXPECT_EQ(now[2].size(), 700u);  // ghosts
  WriteDelta(2);
  for (const size_t shards : {1, 2, 3}) {
    EXPECT_EQ(ContentsOf(RestoreAll(PlacementOf(shards), kOptimizer, PrefixOf(2))), now) << shards;
  }
  // Some come back, and others go.
  for (uint64_t step = 12; step < 20; ++step) PushAndSweep(step, SpreadIds(200, 300));
  WriteDelta(3);
  now = Contents();
  EXPECT_EQ(now[1].size(), 300u);
  EXPECT_EQ(now[2].size(), 500u);
  for (const size_t shards : {1, 2, 3}) {
    EXPECT_EQ(ContentsOf(RestoreAll(PlacementOf(shards), kOptimizer, PrefixOf(3))), now) << shards;
  }
}

TEST_F(ExpiringDeltaFilesTest, AChainIsMergedToWhatWouldHaveBeenWritten) {
  PushAndSweep(1, SpreadIds(0, 1000));
  WriteWhole(1);
  for (uint64_t step = 2; step < 12; ++step) PushAndSweep(step, SpreadIds(0, 300));
  WriteDelta(2);
  for (uint64_t step = 12; step < 20; ++step) PushAndSweep(step, SpreadIds(200, 300));
  WriteDelta(3);
  // The same of the same instant.
  std::vector<ShardCut> cuts;
  for (const auto& store : stores_) cuts.push_back(store->Cut());
  WriteCuts(stores_, cuts, "/job/whole/model.ckpt-3", NameOf(3));
  const auto bundle = BundleReader::Open(PrefixOf(3), &files_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  ASSERT_EQ(MergeChain(**bundle, "/job/merged/model.ckpt-3", &files_), absl::OkStatus());
  const auto same = [&](const auto& path_of) {
    return Content(path_of("/job/whole/model.ckpt-3")) ==
           Content(path_of("/job/merged/model.ckpt-3"));
  };
  for (size_t f = 0; f < 3; ++f) {
    EXPECT_TRUE(same([f](const char* prefix) { return DataPath(prefix, f, 3); })) << f;
  }
  EXPECT_TRUE(same([](const char* prefix) { return IndexPath(prefix); }));
}

class TurnsDeltaFilesTest : public DeltaFilesTest {
 protected:
  TurnsDeltaFilesTest() : DeltaFilesTest(TestTablePlacement(2), "sgd {}") {}
};

// Ids are trained in turn, so each delta lacks most of them: a restore that takes a row from the
// wrong link, or from none, shows in how often it was updated.
TEST_F(TurnsDeltaFilesTest, ARowHasEveryUpdateWhicheverLinkItsLastOneIsIn) {
  constexpr uint64_t kIds = 10;
  std::map<uint64_t, float> expected;
  for (uint64_t step = 1; step <= 47; ++step) {
    const uint64_t id = step % kIds;
    for (const auto& store : stores_) {
      PushRows(store.get(), step, static_cast<int64_t>(step), {id}, [](uint64_t) { return 0.01f; });
    }
    expected[id] -= 0.01f;
    if (step % 3 != 0) continue;
    if (step == 3) {
      WriteWhole(3);
    } else {
      WriteDelta(static_cast<int64_t>(step));
    }
    for (const size_t shards : {1, 3}) {
      const TableContents rows =
          ContentsOf(RestoreAll(shards, "sgd {}", PrefixOf(static_cast<int64_t>(step))));
      ASSERT_EQ(rows[1].size(), expected.size());
      for (const auto& [id_of_row, row] : rows[1]) {
        EXPECT_EQ(row.values[0], expected[id_of_row]) << id_of_row << " at step " << step;
      }
    }
  }
}

TEST_F(DeltaFilesTest, ADeltaWithoutChangesIsRestored) {
  PushToAll(stores_, 1, SpreadIds(0, 100));
  WriteWhole(1);
  WriteDelta(2);
  WriteDelta(3);
  EXPECT_EQ(ContentsOf(RestoreAll(3, kOptimizer, PrefixOf(3))), Contents());
}

TEST_F(DeltaFilesTest, ChangesOfOnePercentTakeLittleMore) {
  PushToAll(stores_, 1, SpreadIds(0, 100'000));
  WriteWhole(1);
  PushToAll(stores_, 2, SpreadIds(0, 1000));
  WriteDelta(2);
  int64_t dense = 0;
  for (size_t s = 0; s < 2; ++s) dense += 2 * stores_[0]->placement().ShardBytes(s);
  EXPECT_LE(Bytes(2) - dense, (Bytes(1) - dense) * 15 / 1000);
}

TEST_F(DeltaFilesTest, OnlyDeltasHaveTheNewestFormat) {
  PushToAll(stores_, 1, SpreadIds(0, 100));
  WriteWhole(1);
  WriteDelta(2);
  for (const auto& [step, format] : {std::pair(1, 2u), std::pair(2, 3u)}) {
    const auto bundle = BundleReader::Open(PrefixOf(step), &files_);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    v1::ShardState state;
    ASSERT_TRUE(state.ParseFromString(*(*bundle)->ReadString(ShardStateName(0, 2))));
    EXPECT_EQ(state.format(), format);
    const auto base = BaseOf(**bundle);
    ASSERT_TRUE(base.ok());
    EXPECT_EQ(base->has_value(), step == 2);
  }
}

TEST_F(DeltaFilesTest, AChainWithoutItsBaseIsNoSnapshot) {
  PushToAll(stores_, 1, SpreadIds(0, 100));
  WriteWhole(1);
  WriteDelta(2);
  WriteDelta(3);
  ASSERT_TRUE(files_.Remove(IndexPath(PrefixOf(1))).ok());
  const absl::Status status = RestoreStatus(3);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("/job/model.ckpt-2: is a delta on the snapshot 00000000000003e9 of step 1: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job/model.ckpt-1.index"));
}

TEST_F(DeltaFilesTest, AnotherSnapshotInPlaceOfTheBaseIsNoticed) {
  PushToAll(stores_, 1, SpreadIds(0, 100));
  WriteWhole(1);
  WriteDelta(2);
  std::vector<ShardCut> cuts;
  for (const auto& store : stores_) cuts.push_back(store->Cut());
  v1::SnapshotBase other = NameOf(1);
  other.set_snapshot_id(5);
  WriteCuts(stores_, cuts, PrefixOf(1), other);
  EXPECT_EQ(
      RestoreStatus(2),
      absl::DataLossError(
          "/job/model.ckpt-2: is a delta on the snapshot 00000000000003e9 of step 1: expected "
          "it in /job/model.ckpt-1, found the snapshot 0000000000000005 of step 1"));
}

TEST_F(DeltaFilesTest, RowsThatAreMissingInTheChainAreNoticed) {
  PushToAll(stores_, 1, SpreadIds(0, 100));
  WriteWhole(1);
  PushToAll(stores_, 2, SpreadIds(0, 200));
  WriteDelta(2);
  // Names itself as the snapshot on which the delta builds, and lacks rows.
  TableShards others = NewShards(TestTablePlacement(2), kOptimizer);
  PushToAll(others, 1, SpreadIds(300, 10));
  std::vector<ShardCut> cuts;
  for (const auto& store : others) cuts.push_back(store->Cut());
  WriteCuts(others, cuts, PrefixOf(1), NameOf(1));
  const absl::Status status = RestoreStatus(2);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("with those of its base, found"));
}

TEST_F(DeltaFilesTest, ADeltaIsRefusedWhereTheChangesAreNotKnown) {
  const ShardCut cut = stores_[0]->Cut();
  EXPECT_EQ(CheckTablePlaces(*stores_[0]->tables(), *cut.tables,
                             {.rows = {{}, {}}, .base = NameOf(1), .erased = {{}, {}}}),
            absl::InvalidArgumentError(
                "base: expected none, since what has changed is not known, found one"));
}

}  // namespace
}  // namespace keelson
