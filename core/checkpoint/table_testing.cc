#include "core/checkpoint/table_testing.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"
#include "core/table/row_id.h"
#include "core/tensor/initializer_proto.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

uint32_t PartitionOf(const TestTable& table, uint64_t id) {
  return RowPartitionOf(MixId(id, TableSalt(TableOfRows(table.spec.name))));
}

// Ids of the partitions before this one.
template <typename Ids>
int64_t IdsBefore(const TestTable& table, const Ids& ids, uint32_t partition) {
  return std::count_if(ids.begin(), ids.end(),
                       [&](uint64_t id) { return PartitionOf(table, id) < partition; });
}

int64_t RowsBefore(const TestTable& table, uint32_t partition) {
  int64_t rows = 0;
  for (const auto& [id, row] : table.rows) rows += PartitionOf(table, id) < partition;
  return rows;
}

void AddLink(const std::vector<TestTable>& tables, const TestLink& link, v1::ShardState* state) {
  if (!link.base.has_value()) return;
  state->set_format(kShardStateFormat);
  *state->mutable_base() = *link.base;
  const uint32_t begin = state->first_row_partition();
  for (size_t t = 0; t < tables.size(); ++t) {
    v1::ShardState::Table* const out = state->mutable_tables(static_cast<int>(t));
    out->set_first_erased(IdsBefore(tables[t], link.erased[t], begin));
    out->set_total_erased(static_cast<int64_t>(link.erased[t].size()));
    for (uint32_t p = begin; p < begin + state->num_row_partitions(); ++p) {
      const auto in_partition = [&](const auto& ids) {
        return IdsBefore(tables[t], ids, p + 1) - IdsBefore(tables[t], ids, p);
      };
      out->add_all_rows(in_partition(link.all[t]));
      out->add_erased(in_partition(link.erased[t]));
    }
  }
}

void WriteErased(const TestTable& table, const std::multiset<uint64_t>& erased, uint32_t partition,
                 BundleDataWriter* writer) {
  std::vector<uint64_t> ids;
  for (const uint64_t id : erased) {
    if (PartitionOf(table, id) == partition) ids.push_back(id);
  }
  const TableRowRange range = {IdsBefore(table, erased, partition),
                               static_cast<int64_t>(erased.size())};
  if (range.total == 0 && partition > 0) return;
  ASSERT_EQ(WriteErasedIds(table.spec.name, ids, range, writer, [] { return absl::OkStatus(); }),
            absl::OkStatus());
}

void WriteName(FileSystem* file_system, const std::string& prefix, const v1::SnapshotBase& name,
               size_t data_shard, std::vector<BundleIndexEntry>* entries) {
  auto writer = BundleDataWriter::Create(file_system, DataPath(prefix, data_shard, data_shard + 1),
                                         data_shard);
  ASSERT_TRUE(writer.ok()) << writer.status();
  v1::JobState state;
  state.set_global_step(name.step());
  state.set_snapshot_id(name.snapshot_id());
  ASSERT_EQ((*writer)->AddInt64("global_step", name.step()), absl::OkStatus());
  ASSERT_EQ((*writer)->AddString(kJobStateName, state.SerializeAsString()), absl::OkStatus());
  const auto written = (*writer)->Finish();
  ASSERT_TRUE(written.ok()) << written.status();
  entries->insert(entries->end(), written->begin(), written->end());
}

v1::ShardState StateOf(const std::vector<TestTable>& tables, uint32_t begin, uint32_t end) {
  v1::ShardState state;
  state.set_format(kGhostlessShardStateFormat);
  state.set_shard_step(9);
  state.set_steps_done(10);
  state.set_first_row_partition(begin);
  state.set_num_row_partitions(end - begin);
  v1::ShardState::Applied* const applied = state.add_applied();
  applied->set_incarnation(7);
  for (uint32_t p = begin; p < end; ++p) {
    v1::ShardState::Applied::Run* const run = applied->add_runs();
    run->set_begin(p - begin);
    run->set_end(p - begin + 1);
    run->set_sequence(p);
  }
  for (const TestTable& table : tables) {
    const bool ghosts = TableOfRows(table.spec.name) != table.spec.name;
    v1::ShardState::Table* const out = ghosts ? state.add_ghosts() : state.add_tables();
    out->set_name(table.spec.name);
    out->set_dim(table.spec.dim);
    *out->mutable_initializer() = InitializerToProto(table.spec.initializer);
    out->set_seed(table.seed);
    out->set_first_row(RowsBefore(table, begin));
    out->set_total_rows(static_cast<int64_t>(table.rows.size()));
    for (uint32_t p = begin; p < end; ++p) {
      out->add_rows(RowsBefore(table, p + 1) - RowsBefore(table, p));
    }
  }
  return state;
}

}  // namespace

TestTable UsersTable(size_t count) {
  TestTable table;
  table.spec = {"users", 3, {Initializer::Kind::kUniform, -0.5f, 0.5f}};
  table.seed = 11;
  table.slots = {{"Adagrad", 3, 0.1f}, {"Sum", 1, 0}};
  float next = 1;
  for (uint64_t i = 0; i < count; ++i) {
    TestRow row;
    for (int e = 0; e < 3; ++e) row.values.push_back(next++);
    row.slots = {{next, next + 1, next + 2}, {next + 3}};
    next += 4;
    row.last_step = static_cast<uint32_t>(i);
    row.updates = static_cast<uint32_t>(i + 1);
    table.rows[i % 2 == 0 ? i : ~i] = row;
  }
  return table;
}

TableColumns ColumnsOf(const TestTable& table, uint32_t partition) {
  TableColumns columns;
  columns.Clear(table.slots.size());
  for (const auto& [id, row] : table.rows) {
    if (PartitionOf(table, id) != partition) continue;
    columns.ids.push_back(id);
    columns.values.insert(columns.values.end(), row.values.begin(), row.values.end());
    for (size_t s = 0; s < row.slots.size(); ++s) {
      columns.slots[s].insert(columns.slots[s].end(), row.slots[s].begin(), row.slots[s].end());
    }
    columns.last_steps.push_back(row.last_step);
    columns.updates.push_back(row.updates);
  }
  return columns;
}

void AddTestRows(const TableColumns& columns, std::map<uint64_t, TestRow>* rows) {
  const size_t n = columns.ids.size();
  const auto part = [&](const std::vector<float>& all, size_t i) {
    const auto size = static_cast<int64_t>(all.size() / n);
    const auto begin = all.begin() + static_cast<int64_t>(i) * size;
    return std::vector<float>(begin, begin + size);
  };
  for (size_t i = 0; i < n; ++i) {
    TestRow row;
    row.values = part(columns.values, i);
    for (const std::vector<float>& slot : columns.slots) row.slots.push_back(part(slot, i));
    row.last_step = columns.last_steps[i];
    row.updates = columns.updates[i];
    EXPECT_TRUE(rows->emplace(columns.ids[i], std::move(row)).second) << columns.ids[i];
  }
}

v1::SnapshotBase TestSnapshotName(int64_t step, uint64_t id) {
  v1::SnapshotBase name;
  name.set_step(step);
  name.set_snapshot_id(id);
  return name;
}

TestTable WriteUsersChain(FileSystem* file_system, const std::string& directory) {
  TestTable table = UsersTable(500);
  const std::vector<TestTable> whole = {table};
  TestLink link = {TestSnapshotName(1, 101)};
  WriteTables(file_system, JoinPath(directory, "model.ckpt-1"), whole, 2, nullptr, link);
  std::multiset<uint64_t> erased;
  TestTable delta = table;
  const auto write = [&](int64_t step) {
    std::set<uint64_t> all;
    for (const auto& [id, row] : table.rows) all.insert(id);
    link = {TestSnapshotName(step, 100 + static_cast<uint64_t>(step)), link.name, {all}, {erased}};
    WriteTables(file_system, JoinPath(directory, absl::StrCat("model.ckpt-", step)), {delta}, 2,
                nullptr, link);
    delta.rows.clear();
    erased.clear();
  };
  const auto set = [&](uint64_t id, float value) {
    table.rows[id] = delta.rows[id] = {
        {value, value, value}, {{value, 1, 2}, {value}}, static_cast<uint32_t>(value), 7};
  };
  const auto erase = [&](uint64_t id) {
    table.rows.erase(id);
    delta.rows.erase(id);
    erased.insert(id);
  };
  delta.rows.clear();
  for (uint64_t id = 0; id < 40; ++id) set(id, 1000.0f + static_cast<float>(id));  // also new ones
  for (uint64_t id = 0; id < 300; id += 3) erase(id);
  set(6, 4000);  // erased, and made again
  write(2);
  for (uint64_t id = 0; id < 20; id += 5) set(id, 2000.0f + static_cast<float>(id));
  for (const uint64_t id : {2, 2, 4, 400}) erase(id);
  erase(~uint64_t{1});
  write(3);
  return table;
}

void WriteTables(FileSystem* file_system, const std::string& prefix,
                 const std::vector<TestTable>& tables, size_t num_shards, const ChangeState& change,
                 const TestLink& link) {
  std::vector<BundleIndexEntry> entries;
  const bool named = link.name.snapshot_id() != 0;
  const size_t num_files = num_shards + (named ? 1 : 0);
  for (size_t shard = 0; shard < num_shards; ++shard) {
    const RowPartitionRun run = RowPartitionsOfShard(shard, num_shards);
    const uint32_t begin = run.first, end = run.first + run.count;
    auto writer = BundleDataWriter::Create(file_system, DataPath(prefix, shard, num_files), shard);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (size_t t = 0; t < tables.size(); ++t) {
      const TestTable& table = tables[t];
      for (uint32_t p = begin; p < end; ++p) {
        if (link.base.has_value()) WriteErased(table, link.erased[t], p, writer->get());
        const TableRowRange range = {RowsBefore(table, p), static_cast<int64_t>(table.rows.size())};
        if (range.total == 0 && p > 0) continue;
        ASSERT_EQ(
            WriteTableColumns(table.spec.name, table.spec.dim, table.slots, ColumnsOf(table, p),
                              range, writer->get(), [] { return absl::OkStatus(); }),
            absl::OkStatus());
      }
    }
    v1::ShardState state = StateOf(tables, begin, end);
    AddLink(tables, link, &state);
    if (change != nullptr) change(&state);
    ASSERT_EQ((*writer)->AddString(ShardStateName(shard, num_shards), state.SerializeAsString()),
              absl::OkStatus());
    const auto written = (*writer)->Finish();
    ASSERT_TRUE(written.ok()) << written.status();
    entries.insert(entries.end(), written->begin(), written->end());
  }
  if (named) WriteName(file_system, prefix, link.name, num_shards, &entries);
  ASSERT_EQ(WriteBundleIndex(file_system, prefix, num_files, entries), absl::OkStatus());
}

}  // namespace keelson
