// Looks rows of embedding tables up in a bundle's files, without loading the tables; in a delta's
// with those of its bases, from the newest to the oldest.
#ifndef KEELSON_CORE_CHECKPOINT_STORED_ROWS_H_
#define KEELSON_CORE_CHECKPOINT_STORED_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/stored_tables.h"
#include "core/checkpoint/table_columns.h"
#include "core/table/row_id.h"

namespace keelson {

// Rows of a table by ids. What a table has no row for has its initial values (InitialRows), initial
// slots, no step and no updates.
struct RowMatrix {
  size_t floats = 0;        // of a row: the values, then the slots that were asked for
  std::vector<float> rows;  // [ids, floats]
  std::vector<bool> present;
  // Where counters were asked for.
  std::vector<uint32_t> last_steps;
  std::vector<uint32_t> updates;
};

// Thread-safe. Holds the bundle's files open and, where their file system can, maps them, so that
// the system keeps of them what is read. Ids are searched by halving within their partition.
class StoredRows {
 public:
  // Reads the index and the shards' states. Errors of BundleReader::Open and StoredTables::Open.
  static absl::StatusOr<std::unique_ptr<StoredRows>> Open(
      const std::string& prefix, FileSystem* file_system = FileSystem::Real());

  const StoredTables& tables() const { return *tables_; }
  const BundleReader& bundle() const { return *bundle_; }

  struct Wanted {
    absl::Span<const TableSlot> slots = {};
    bool counters = false;
  };
  // Reads the rows of distinct ids, which come fastest in row order. `table` is one of tables();
  // for a row optimizer that makes up for missed steps, `wanted` has its slots and counters, and
  // tables().steps_done() the steps. INVALID_ARGUMENT: there is no such slot. DATA_LOSS: a column
  // is damaged; of every slice that is touched, the checksum of the whole has been verified.
  absl::Status Read(const StoredTable& table, absl::Span<const uint64_t> ids, const Wanted& wanted,
                    RowMatrix* matrix) const;

 private:
  // A column of a table.
  struct Column;
  // Positions in the ids that were asked for, and rows of the table's tensors.
  struct Found {
    size_t position;
    int64_t row;
  };
  // An id that was asked for.
  struct Sought {
    uint64_t id;
    size_t position;
  };
  // Ids of a partition in a tensor.
  struct IdRange {
    std::string tensor;
    int64_t first = 0;
    int64_t count = 0;
    bool erased = false;
  };

  explicit StoredRows(std::unique_ptr<BundleReader> bundle) : bundle_(std::move(bundle)) {}

  static void FillInitial(const StoredTable& table, absl::Span<const uint64_t> ids,
                          const Wanted& wanted, RowMatrix* matrix);
  // Reads what is found, run by run of ids of one partition.
  absl::Status ReadRuns(const StoredTable& table, absl::Span<const uint64_t> ids,
                        absl::Span<const Column> columns, RowMatrix* matrix) const;
  // Looks ids of a partition up in the link: moves those that have a row there to `found`, and
  // drops those that it says were erased.
  absl::Status Search(size_t link, const StoredTable& table, uint32_t partition,
                      std::vector<Sought>* sought, std::vector<Found>* found) const;
  // Calls visit(sought, place) for those that are among the ids of the range, with their place
  // there.
  absl::Status SearchRange(size_t link, const StoredTable& table, uint32_t partition,
                           const IdRange& range, absl::Span<const Sought> sought,
                           absl::FunctionRef<void(size_t sought, int64_t place)> visit) const;
  // The ids, which have been checked: where they lie, or else in `buffer`.
  absl::StatusOr<const char*> IdsOf(size_t link, const StoredTable& table, uint32_t partition,
                                    const IdRange& range, std::vector<int64_t>* buffer) const;
  // Copies the column's rows, all of `partition`.
  absl::Status Copy(const Column& column, const StoredTables& stored, const StoredTable& table,
                    uint32_t partition, absl::Span<const Found> found) const;

  const std::unique_ptr<BundleReader> bundle_;
  std::unique_ptr<StoredTables> tables_;
  std::vector<const StoredTables*> links_;  // the bundle and its bases, the newest first
  mutable Mutex mu_;
  // By link and table: partitions whose ids have been checked; those of rows, and those that were
  // erased.
  using Checked = std::array<std::array<bool, 2>, kRowPartitions>;
  mutable std::vector<std::vector<Checked>> checked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_STORED_ROWS_H_
