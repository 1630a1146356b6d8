// Writes the rows of a shard's tables to a bundle and restores them from one.
#ifndef KEELSON_PS_SERVER_SNAPSHOTS_TABLE_FILES_H_
#define KEELSON_PS_SERVER_SNAPSHOTS_TABLE_FILES_H_

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/table_columns.h"
#include "core/tensor/variable.h"
#include "keelson/v1/checkpoint.pb.h"
#include "ps_server/units/table_store.h"

namespace keelson {

// What is said of tables here holds for their ghosts as well (TableStore::tables_and_ghosts).

// The slots of a table's rows.
std::vector<TableSlot> SlotsOf(const ServedTable& table);

// INVALID_ARGUMENT: a variable has the name of a tensor in which snapshots have a table's rows. (A
// configuration cannot name one so.)
absl::Status CheckColumnNames(const TableStore& store, absl::Span<const VariableSpec> variables);

// Where a cut's rows go in a snapshot.
struct TablePlaces {
  std::vector<TableRowRange> rows = {};  // by table
  // Of a delta: what it builds on, and where the erased ids go, by table.
  std::optional<v1::SnapshotBase> base = std::nullopt;
  std::vector<TableRowRange> erased = {};

  // Which rows of the cut these are.
  TableCut::Part part() const {
    return base.has_value() ? TableCut::Part::kChanged : TableCut::Part::kAll;
  }
};

// INVALID_ARGUMENT: `places` are not for each of the cut's tables a place where its rows, and
// erased ids, fit; a delta, where the cut does not know what has changed.
absl::Status CheckTablePlaces(const TableStore& store, const TableCut& cut,
                              const TablePlaces& places);

// Writes the rows of a cut, by partition, then table, as the rows of the tables' tensors from their
// place on; of a delta those that have changed, and the erased ids. A partition that is written
// ends its part of the cut. Takes the memory of one partition's rows of one table. Errors of
// TablePartition::ReadCut, the writer and `go_on`.
absl::Status WriteTables(const TableStore& store, const TableCut& cut, const TablePlaces& places,
                         BundleDataWriter* writer, absl::FunctionRef<absl::Status()> go_on);

// Adds what the state of a shard says of them.
void AddTables(const TableStore& store, const TableCut& cut, const TablePlaces& places,
               v1::ShardState* state);

// Gives a store without rows those of the bundle and its bases, on so many threads, whatever the
// number of shards that wrote it; reads the slices of the store's own partitions alone. A table
// that the bundle does not have stays empty, and a slot that it lacks gets its initial value; both
// are logged. Errors of StoredTables; INVALID_ARGUMENT also: the table is another one
// (StoredTables::CheckSame).
absl::Status RestoreTables(const BundleReader& bundle, int threads, TableStore* store);

// Adds rows, of a partition of the store, that are not there yet.
absl::Status AddRows(size_t table, uint32_t partition, const TableColumns& columns,
                     TableStore* store);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SNAPSHOTS_TABLE_FILES_H_
