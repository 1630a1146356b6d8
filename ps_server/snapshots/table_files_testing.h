// Shards with tables that tests write to files and restore.
#ifndef KEELSON_PS_SERVER_SNAPSHOTS_TABLE_FILES_TESTING_H_
#define KEELSON_PS_SERVER_SNAPSHOTS_TABLE_FILES_TESTING_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/table_testing.h"
#include "core/table/row_id.h"
#include "core/table/row_testing.h"
#include "gtest/gtest.h"
#include "keelson/v1/checkpoint.pb.h"
#include "ps_server/service/row_messages_testing.h"
#include "ps_server/snapshots/shard_files.h"

namespace keelson {

using TableShards = std::vector<std::unique_ptr<ShardStore>>;
// By table, then id.
using TableContents = std::vector<std::map<uint64_t, TestRow>>;

inline constexpr char kTablePrefix[] = "/job/model.ckpt-1";
inline constexpr float kTablesRate = 1;

// Counts the bytes that are read.
class CountingFileSystem : public MemoryFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForRead(const std::string& path) override {
    auto file = MemoryFileSystem::OpenForRead(path);
    if (!file.ok()) return file.status();
    return std::make_unique<CountingFile>(*std::move(file), &bytes_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  class CountingFile : public RandomAccessFile {
   public:
    CountingFile(std::unique_ptr<RandomAccessFile> file, std::atomic<int64_t>* bytes)
        : RandomAccessFile(file->path(), file->size()), file_(std::move(file)), bytes_(bytes) {}
    absl::Status Read(uint64_t offset, size_t size, char* buffer) const override {
      *bytes_ += static_cast<int64_t>(size);
      return file_->Read(offset, size, buffer);
    }

   private:
    const std::unique_ptr<RandomAccessFile> file_;
    std::atomic<int64_t>* const bytes_;
  };

  std::atomic<int64_t> bytes_{0};
};

// The optimizer of both tables.
inline std::string ForTables(const std::string& optimizer) {
  return absl::StrCat("sgd {} groups { variables: 'items' ", optimizer,
                      " } groups { variables: 'users' ", optimizer, " }");
}

inline std::vector<uint64_t> SpreadIds(uint64_t first, uint64_t count) {
  std::vector<uint64_t> ids;
  for (uint64_t i = first; i < first + count; ++i) ids.push_back(i % 2 == 0 ? i : ~i);
  return ids;
}

class TableFilesTest : public testing::Test {
 protected:
  using GradientOf = std::function<float(uint64_t id)>;

  TableFilesTest() { EXPECT_TRUE(files_.CreateDirectories("/job").ok()); }

  static TableShards NewShards(const Placement& placement, const std::string& optimizer) {
    TableShards stores;
    for (size_t s = 0; s < placement.num_shards(); ++s) {
      auto store = InitializeShard(StoreOptions(placement, s, optimizer), kTestSeed);
      EXPECT_TRUE(store.ok()) << store.status();
      stores.push_back(*std::move(store));
    }
    return stores;
  }

  // One push of all of these rows of both tables.
  static void PushRows(ShardStore* store, uint64_t sequence, int64_t step,
                       const std::vector<uint64_t>& ids, const GradientOf& gradient_of) {
    TableStore* const tables = store->tables();
    const RowPartitionRun run = tables->partitions();
    std::vector<IdList> lists;
    std::vector<size_t> begins;
    for (const ServedTable& table : tables->tables()) {
      lists.push_back(ListOf(ids, TableSalt(table.spec.name), run));
      begins.push_back(0);
    }
    const ShardStore::PushScope scope(store);
    for (uint32_t p = 0; p < run.count; ++p) {
      std::vector<std::vector<float>> gradients(lists.size());
      std::vector<ByteRope> ropes(lists.size());
      std::vector<ByteCursor> cursors;
      std::vector<RowUpdate> updates;
      cursors.reserve(lists.size());
      for (size_t t = 0; t < lists.size(); ++t) {
        const auto part = absl::MakeConstSpan(lists[t].ids).subspan(begins[t], lists[t].counts[p]);
        begins[t] += part.size();
        for (const uint64_t id : part) {
          gradients[t].insert(gradients[t].end(), static_cast<size_t>(tables->tables()[t].spec.dim),
                              gradient_of(id));
        }
        ropes[t].AppendBorrowed(gradients[t].data(), gradients[t].size() * sizeof(float));
        cursors.emplace_back(ropes[t]);
        updates.push_back({t, part, WireFormat::kFloat32, &cursors[t]});
      }
      tables->Partition(run.first + p)
          ->Apply({1, sequence}, tables->UpdateAt(step, kTablesRate), updates);
    }
    store->CountPush();
  }
  static void PushToAll(const TableShards& stores, uint64_t sequence,
                        const std::vector<uint64_t>& ids) {
    for (const auto& store : stores) {
      PushRows(store.get(), sequence, static_cast<int64_t>(sequence), ids,
               [&](uint64_t id) { return 0.25f * static_cast<float>((id + sequence) % 7) - 0.5f; });
    }
  }

  // Of a delta, if there is a base.
  static std::vector<TablePlaces> PlacesOf(const std::vector<ShardCut>& cuts, size_t num_tables,
                                           const std::optional<v1::SnapshotBase>& base = {}) {
    std::vector<TablePlaces> places(cuts.size());
    const auto place = [&](std::vector<TableRowRange> TablePlaces::*ranges, const auto& count) {
      int64_t total = 0;
      for (size_t s = 0; s < cuts.size(); ++s) {
        (places[s].*ranges).push_back({total, 0});
        total += count(*cuts[s].tables, places[s].part());
      }
      for (TablePlaces& of_shard : places) (of_shard.*ranges).back().total = total;
    };
    for (TablePlaces& of_shard : places) of_shard.base = base;
    for (size_t t = 0; t < num_tables; ++t) {
      place(&TablePlaces::rows,
            [t](const TableCut& cut, TableCut::Part part) { return cut.Rows(t, part); });
      if (!base.has_value()) continue;
      place(&TablePlaces::erased,
            [t](const TableCut& cut, TableCut::Part) { return cut.NumErased(t); });
    }
    return places;
  }
  // Writes a snapshot, and a part of the chief's that names it, where it has an `id`.
  void WriteCuts(const TableShards& stores, const std::vector<ShardCut>& cuts,
                 const std::string& prefix = kTablePrefix, const v1::SnapshotBase& id = {},
                 const std::optional<v1::SnapshotBase>& base = {}) {
    const bool tables = stores[0]->tables() != nullptr;
    const auto places =
        PlacesOf(cuts, tables ? stores[0]->tables()->tables_and_ghosts().size() : 0, base);
    std::vector<BundleIndexEntry> entries;
    const bool named = id.snapshot_id() != 0;
    const size_t files = stores.size() + (named ? 1 : 0);
    const auto add = [&](std::vector<BundleIndexEntry> more) {
      std::move(more.begin(), more.end(), std::back_inserter(entries));
    };
    for (size_t s = 0; s < stores.size(); ++s) {
      auto writer = BundleDataWriter::Create(&files_, DataPath(prefix, s, files), s);
      ASSERT_TRUE(writer.ok()) << writer.status();
      auto written = WriteShard(*stores[s], cuts[s], places[s], writer->get());
      ASSERT_TRUE(written.ok()) << written.status();
      add(std::move(written->entries));
    }
    if (named) {
      auto writer =
          BundleDataWriter::Create(&files_, DataPath(prefix, files - 1, files), files - 1);
      ASSERT_TRUE(writer.ok()) << writer.status();
      v1::JobState state;
      state.set_global_step(id.step());
      state.set_snapshot_id(id.snapshot_id());
      ASSERT_EQ((*writer)->AddString(kJobStateName, state.SerializeAsString()), absl::OkStatus());
      auto written = (*writer)->Finish();
      ASSERT_TRUE(written.ok()) << written.status();
      add(*std::move(written));
    }
    ASSERT_EQ(WriteBundleIndex(&files_, prefix, files, std::move(entries)), absl::OkStatus());
  }
  void Write(const TableShards& stores) {
    std::vector<ShardCut> cuts;
    for (const auto& store : stores) cuts.push_back(store->Cut());
    WriteCuts(stores, cuts);
  }

  absl::StatusOr<std::unique_ptr<ShardStore>> Restore(const Placement& placement, size_t shard,
                                                      const std::string& optimizer,
                                                      const std::string& prefix = kTablePrefix) {
    return RestoreShard(StoreOptions(placement, shard, optimizer), prefix, &files_,
                        /*threads=*/3);
  }
  TableShards RestoreAll(size_t shards, const std::string& optimizer,
                         const std::string& prefix = kTablePrefix) {
    return RestoreAll(TestTablePlacement(shards), optimizer, prefix);
  }
  TableShards RestoreAll(const Placement& placement, const std::string& optimizer,
                         const std::string& prefix = kTablePrefix) {
    TableShards stores;
    for (size_t s = 0; s < placement.num_shards(); ++s) {
      auto store = Restore(placement, s, optimizer, prefix);
      EXPECT_TRUE(store.ok()) << store.status();
      stores.push_back(*std::move(store));
    }
    return stores;
  }

  static TestRow RowOf(const RowLayout& layout, const RowHeader& row) {
    const float* const values = row.values();
    TestRow copy;
    copy.values.assign(values, values + layout.dim());
    for (size_t s = 0; s < layout.slots().size(); ++s) {
      const float* const slot = values + layout.SlotOffset(s);
      copy.slots.emplace_back(slot, slot + layout.slots()[s].floats);
    }
    copy.last_step = row.last_step;
    copy.updates = row.updates;
    return copy;
  }
  // With `since`, the shards go on to account for changes since these cuts.
  static TableContents ContentsOf(const TableShards& stores,
                                  const std::vector<uint64_t>& since = {}) {
    TableContents contents(stores[0]->tables()->tables_and_ghosts().size());
    for (size_t s = 0; s < stores.size(); ++s) {
      const auto& store = stores[s];
      const ShardCut cut = store->Cut(since.empty() ? CutChanges() : CutChanges{since[s], true});
      const TableStore& tables = *store->tables();
      const RowPartitionRun run = tables.partitions();
      for (uint32_t p = run.first; p < run.first + run.count; ++p) {
        for (size_t t = 0; t < contents.size(); ++t) {
          const auto add = [&](const RowTable&, absl::Span<const RowHeader* const> rows) {
            for (const RowHeader* row : rows) {
              contents[t][row->id] = RowOf(tables.tables_and_ghosts()[t].layout, *row);
            }
          };
          EXPECT_EQ(cut.tables->Read(p, t, add, [] { return absl::OkStatus(); }), absl::OkStatus());
        }
      }
    }
    return contents;
  }
  std::string DataFile(size_t shard, size_t shards) {
    return Content(DataPath(kTablePrefix, shard, shards));
  }
  std::string Content(const std::string& path) {
    const auto file = files_.OpenForRead(path);
    EXPECT_TRUE(file.ok()) << file.status();
    std::string content((*file)->size(), '\0');
    EXPECT_TRUE((*file)->Read(0, content.size(), content.data()).ok());
    return content;
  }

  CountingFileSystem files_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SNAPSHOTS_TABLE_FILES_TESTING_H_
