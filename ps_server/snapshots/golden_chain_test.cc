// Restores chains of snapshots of tables that an earlier version wrote: a whole snapshot and deltas
// on it, of two servers. Their files stay as they are; a reader that cannot read them has broken
// its promise to users' models. What this build writes is read in the same way.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_rows.h"
#include "gmock/gmock.h"
#include "ps_server/snapshots/table_files_testing.h"

namespace keelson {
namespace {

using ::testing::SizeIs;

using Ids = std::vector<uint64_t>;

constexpr char kOptimizer[] = "momentum { momentum: 0.5 }";
constexpr uint64_t kLast = ~uint64_t{0};
constexpr uint64_t kMiddle = uint64_t{1} << 63;

// Each number is a sum of few powers of two, so that arithmetic is exact.
float Gradient(uint64_t id) { return 0.25f * static_cast<float>(id % 4 + 1); }

class GoldenChainTest : public TableFilesTest {
 protected:
  // Rows of "users" expire, those of "items" may be counted before they are made.
  Placement PlacementOf(size_t shards) const {
    std::vector<TableSpec> tables = TestTables();
    tables[0].admit_after = admit_after_;
    tables[1].expire_after_steps = 3;
    return Placement::Compute({{"bias", Shape({2}), {}}}, shards, 1000, tables);
  }
  static std::string PrefixOf(int64_t step) { return absl::StrCat("/job/model.ckpt-", step); }

  // Puts the files of a directory of golden files where this build's would be.
  void Load(const std::string& name) {
    const char* const source = std::getenv("KEELSON_SOURCE_DIR");
    ASSERT_NE(source, nullptr) << "KEELSON_SOURCE_DIR is not set";
    const std::string directory =
        JoinPath(source, absl::StrCat("ps_server/snapshots/golden/", name));
    const auto files = ListDirectory(directory);
    ASSERT_TRUE(files.ok()) << files.status();
    for (const std::string& file : *files) {
      const auto content = ReadFile(JoinPath(directory, file));
      ASSERT_TRUE(content.ok()) << content.status();
      files_.SetContent(JoinPath("/job", file), *content);
    }
  }

  // ---- What the golden files are of. A snapshot, the first of which is whole, after each of these
  // lists of pushes; the push of step N pushes gradients of both tables.
  using Pushes = std::vector<std::vector<Ids>>;
  void WriteChain(const Pushes& pushes) {
    const TableShards stores = NewShards(PlacementOf(2), kOptimizer);
    std::vector<uint64_t> generations = {0, 0};
    std::optional<v1::SnapshotBase> base;
    uint64_t step = 0;
    for (const std::vector<Ids>& before : pushes) {
      for (const Ids& ids : before) {
        ++step;
        for (const auto& store : stores) {
          PushRows(store.get(), step, static_cast<int64_t>(step), ids, Gradient);
          store->tables()->Sweep(1000);
        }
      }
      std::vector<ShardCut> cuts;
      for (size_t s = 0; s < stores.size(); ++s) {
        cuts.push_back(stores[s]->Cut({generations[s], /*keep=*/true}));
        generations[s] = cuts[s].tables->generation();
      }
      v1::SnapshotBase name;
      name.set_step(static_cast<int64_t>(step));
      name.set_snapshot_id(0xc0ffee00 + step);
      WriteCuts(stores, cuts, PrefixOf(name.step()), name, base);
      base = name;
    }
  }

  // ---- What is expected of them.

  // A row that was pushed at these steps.
  static TestRow PushedAt(const TableSpec& table, uint64_t id, const std::vector<uint32_t>& steps) {
    TestRow row;
    row.values = InitialRow(table, id);
    float velocity = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      velocity = velocity * 0.5f + Gradient(id);
      for (float& value : row.values) value -= velocity;
    }
    row.slots = {std::vector<float>(static_cast<size_t>(table.dim), velocity)};
    row.last_step = steps.back();
    row.updates = static_cast<uint32_t>(steps.size());
    return row;
  }
  static TestRow CountedAt(const std::vector<uint32_t>& steps) {
    return {{}, {}, steps.back(), static_cast<uint32_t>(steps.size())};
  }
  using Steps = std::map<uint64_t, std::vector<uint32_t>>;
  static std::map<uint64_t, TestRow> Rows(const TableSpec& table, const Steps& pushed) {
    std::map<uint64_t, TestRow> rows;
    for (const auto& [id, steps] : pushed) rows[id] = PushedAt(table, id, steps);
    return rows;
  }

  void ExpectRestored(int64_t step, const TableContents& expected) {
    for (const size_t shards : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat("step ", step, " on ", shards));
      const TableShards restored = RestoreAll(PlacementOf(shards), kOptimizer, PrefixOf(step));
      EXPECT_EQ(ContentsOf(restored), expected);
      for (const auto& store : restored) {
        EXPECT_EQ(store->tables()->steps_done(), step + 1);
        EXPECT_EQ(store->shard_step(), step);
      }
    }
    ExpectLookedUp(step, expected);
  }
  // As the evaluator does, which holds no table.
  void ExpectLookedUp(int64_t step, const TableContents& expected) {
    const auto rows = StoredRows::Open(PrefixOf(step), &files_);
    ASSERT_TRUE(rows.ok()) << rows.status();
    const Ids asked = {0, 1, 2, 3, 4, 5, 7, kMiddle, kLast - 1, kLast};
    for (size_t t = 0; t < 2; ++t) {
      const TableSpec spec = TestTables()[t];
      RowMatrix found;
      ASSERT_EQ((*rows)->Read(*(*rows)->tables().Find(spec.name), asked, {}, &found),
                absl::OkStatus());
      for (size_t i = 0; i < asked.size(); ++i) {
        const auto row = expected[t].find(asked[i]);
        EXPECT_EQ(found.present[i], row != expected[t].end()) << spec.name << " " << asked[i];
        const auto begin = found.rows.begin() + static_cast<int64_t>(i) * spec.dim;
        EXPECT_EQ(std::vector<float>(begin, begin + spec.dim),
                  row == expected[t].end() ? InitialRow(spec, asked[i]) : row->second.values)
            << spec.name << " " << asked[i];
      }
    }
  }

  void ExpectWholeAndOfFormat(int64_t step, uint32_t format) {
    const auto bundle = BundleReader::Open(PrefixOf(step), &files_);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    EXPECT_EQ((*bundle)->VerifyAll(), absl::OkStatus());
    const auto state = (*bundle)->ReadString(ShardStateName(0, 2));
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(ParseShardState(*state, PrefixOf(step), ShardStateName(0, 2))->format(), format);
  }
  void ExpectListed(const std::vector<int64_t>& steps) {
    const CheckpointDirectory directory(&files_, "/job", Clock::Real());
    const auto snapshots = directory.List();
    ASSERT_TRUE(snapshots.ok()) << snapshots.status();
    ASSERT_THAT(*snapshots, SizeIs(steps.size()));
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(snapshots->at(i).step, steps[i]);
  }

  // Rows are made, changed, erased because they have expired, and made again.
  static Pushes ExpiringPushes() {
    return {
        {{0, 1, 2, 3, kMiddle, kLast - 1, kLast}}, {{0, 5, kLast}}, {{0, 5}, {0, 5}, {0, 5}, {2}}};
  }
  void ExpectExpiringChain() {
    const std::vector<TableSpec> tables = TestTables();
    Steps pushed = {{0, {1}},       {1, {1}},         {2, {1}},    {3, {1}},
                    {kMiddle, {1}}, {kLast - 1, {1}}, {kLast, {1}}};
    ExpectRestored(1, {Rows(tables[0], pushed), Rows(tables[1], pushed)});
    pushed[0] = pushed[kLast] = {1, 2};
    pushed[5] = {2};
    ExpectRestored(2, {Rows(tables[0], pushed), Rows(tables[1], pushed)});
    pushed[0] = {1, 2, 3, 4, 5};
    pushed[5] = {2, 3, 4, 5};
    pushed[2] = {1, 6};
    const Steps left = {{0, pushed[0]}, {5, pushed[5]}, {2, {6}}};
    ExpectRestored(6, {Rows(tables[0], pushed), Rows(tables[1], left)});
  }

  static Pushes AdmittedPushes() { return {{{0, 1, kLast}}, {{0, 7}}}; }
  void ExpectAdmittedChain() {
    const std::vector<TableSpec> tables = TestTables();
    const auto once = [](uint32_t step) { return CountedAt({step}); };
    Steps pushed = {{0, {1}}, {1, {1}}, {kLast, {1}}};
    ExpectRestored(1,
                   {{}, Rows(tables[1], pushed), {{0, once(1)}, {1, once(1)}, {kLast, once(1)}}});
    pushed[0] = {1, 2};
    pushed[7] = {2};
    ExpectRestored(2, {Rows(tables[0], {{0, {2}}}),
                       Rows(tables[1], pushed),
                       {{1, once(1)}, {7, once(2)}, {kLast, once(1)}}});
  }

  int64_t admit_after_ = 0;
};

TEST_F(GoldenChainTest, FilesOfRowsThatExpire) {
  Load("tables_chain_2_servers");
  ExpectListed({1, 2, 6});
  ExpectWholeAndOfFormat(1, 2);
  ExpectWholeAndOfFormat(2, 3);
  ExpectWholeAndOfFormat(6, 3);
  ExpectExpiringChain();
}

TEST_F(GoldenChainTest, FilesOfIdsThatAreCounted) {
  admit_after_ = 2;
  Load("ghosts_chain_2_servers");
  ExpectListed({1, 2});
  ExpectWholeAndOfFormat(1, 4);
  ExpectWholeAndOfFormat(2, 4);
  ExpectAdmittedChain();
}

TEST_F(GoldenChainTest, GoldenFilesSayWhatWasApplied) {
  Load("tables_chain_2_servers");
  const TableShards restored = RestoreAll(PlacementOf(3), kOptimizer, PrefixOf(6));
  for (const auto& store : restored) {
    const RowPartitionRun run = store->tables()->partitions();
    for (uint32_t p = run.first; p < run.first + run.count; ++p) {
      const auto apply = [&](uint64_t sequence) {
        return store->tables()->Partition(p)->Apply({1, sequence},
                                                    store->tables()->UpdateAt(9, kTablesRate), {});
      };
      EXPECT_FALSE(apply(6)) << p;
      EXPECT_TRUE(apply(7)) << p;
    }
  }
}

TEST_F(GoldenChainTest, ThisBuildsRowsThatExpire) {
  WriteChain(ExpiringPushes());
  ExpectExpiringChain();
}

TEST_F(GoldenChainTest, ThisBuildsIdsThatAreCounted) {
  admit_after_ = 2;
  WriteChain(AdmittedPushes());
  ExpectAdmittedChain();
}

}  // namespace
}  // namespace keelson
