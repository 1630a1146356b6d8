// Bundles with embedding tables, for tests.
#ifndef KEELSON_CORE_CHECKPOINT_TABLE_TESTING_H_
#define KEELSON_CORE_CHECKPOINT_TABLE_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/file_system.h"
#include "core/checkpoint/table_columns.h"
#include "core/tensor/table_spec.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

struct TestRow {
  std::vector<float> values;
  std::vector<std::vector<float>> slots;
  uint32_t last_step = 0;
  uint32_t updates = 0;

  friend bool operator==(const TestRow&, const TestRow&) = default;
};

// Or the ghosts of a table, with GhostsOf as spec.
struct TestTable {
  TableSpec spec;
  uint64_t seed = 0;
  std::vector<TableSlot> slots;
  std::map<uint64_t, TestRow> rows;
};

// A table "users" of dim 3 with the slots "Adagrad" [3] and "Sum" [1], and rows of the ids 0, 1, …
// and the highest ones; `count` in all. All numbers differ.
TestTable UsersTable(size_t count);

// The rows of a partition.
TableColumns ColumnsOf(const TestTable& table, uint32_t partition);
// Adds the rows to `rows`.
void AddTestRows(const TableColumns& columns, std::map<uint64_t, TestRow>* rows);

// Writes them as so many shards would, each with a step of 9 and 10 steps done, and every partition
// with the number of the partition as the sequence of incarnation 7. `change` may change each
// shard's state.
using ChangeState = std::function<void(v1::ShardState*)>;
// The snapshot's name, for those that build on it; and what makes it a delta on `base`: by table
// all ids that it has rows of with its base, and those that were erased.
struct TestLink {
  v1::SnapshotBase name = {};
  std::optional<v1::SnapshotBase> base = std::nullopt;
  std::vector<std::set<uint64_t>> all = {};
  std::vector<std::multiset<uint64_t>> erased = {};
};
void WriteTables(FileSystem* file_system, const std::string& prefix,
                 const std::vector<TestTable>& tables, size_t num_shards,
                 const ChangeState& change = nullptr, const TestLink& link = {});
v1::SnapshotBase TestSnapshotName(int64_t step, uint64_t id);

// Writes three snapshots of one table, of steps 1 to 3, the last two of which are deltas:
// UsersTable(500); with rows changed, made and erased; with some of them erased again, and others
// made again. What it is in the end.
TestTable WriteUsersChain(FileSystem* file_system, const std::string& directory);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_TABLE_TESTING_H_
