// Bundles with embedding tables, for tests.
#ifndef KEELSON_CORE_CHECKPOINT_TABLE_TESTING_H_
#define KEELSON_CORE_CHECKPOINT_TABLE_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
void WriteTables(FileSystem* file_system, const std::string& prefix,
                 const std::vector<TestTable>& tables, size_t num_shards,
                 const ChangeState& change = nullptr);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_TABLE_TESTING_H_
