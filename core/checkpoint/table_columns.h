// How the rows of an embedding table lie in a bundle (v1::ShardState.Table): as columns, of which
// every partition has one slice.
#ifndef KEELSON_CORE_CHECKPOINT_TABLE_COLUMNS_H_
#define KEELSON_CORE_CHECKPOINT_TABLE_COLUMNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/optim/row_optimizer.h"

namespace keelson {

// The names of a table's tensors; those of its slots are SlotTensorName's.
std::string KeysTensorName(absl::string_view table);
std::string ValuesTensorName(absl::string_view table);
std::string LastStepTensorName(absl::string_view table);
std::string UpdatesTensorName(absl::string_view table);
// The ids that a delta says were erased.
std::string ErasedTensorName(absl::string_view table);

// A slot of each row of a table.
struct TableSlot {
  std::string name;
  int64_t floats = 1;  // of a row: the table's dim, or 1
  float initial_value = 0;
};

// Those that an optimizer has.
std::vector<TableSlot> TableSlotsOf(absl::Span<const RowSlotSpec> slots);

// The rows of a table in one partition, by ascending ids.
struct TableColumns {
  std::vector<uint64_t> ids;
  std::vector<float> values;              // [ids, dim]
  std::vector<std::vector<float>> slots;  // by slot: [ids, floats]
  std::vector<uint32_t> last_steps;
  std::vector<uint32_t> updates;

  // Removes the rows, and makes place for `slots` slots.
  void Clear(size_t slots);
  int64_t rows() const { return static_cast<int64_t>(ids.size()); }

  // Makes place for so many rows with these slots.
  void Resize(size_t rows, size_t dim, absl::Span<const TableSlot> of);
  // Sets row `to` to row `row` of others of the same dim and slots.
  void Copy(const TableColumns& from, size_t row, size_t to);
};

// The place of rows in the tensors of a table.
struct TableRowRange {
  int64_t first = 0;
  int64_t total = 0;  // of the tensors
};

// Writes the rows as the tensors' rows from range.first on; with dim 0 there are no values. Nothing
// is written without rows, unless the tensors have none at all. Errors of the writer, and of
// `go_on`, which is called before each tensor.
absl::Status WriteTableColumns(absl::string_view table, int64_t dim,
                               absl::Span<const TableSlot> slots, const TableColumns& columns,
                               const TableRowRange& range, BundleDataWriter* writer,
                               absl::FunctionRef<absl::Status()> go_on);

// The same of the ids, ascending, that were erased from a partition.
absl::Status WriteErasedIds(absl::string_view table, const std::vector<uint64_t>& ids,
                            const TableRowRange& range, BundleDataWriter* writer,
                            absl::FunctionRef<absl::Status()> go_on);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_TABLE_COLUMNS_H_
