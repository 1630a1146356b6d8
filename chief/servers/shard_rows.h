// The rows of a shard's tables, from a snapshot, as the messages of InitializeStreamed.
#ifndef KEELSON_CHIEF_SERVERS_SHARD_ROWS_H_
#define KEELSON_CHIEF_SERVERS_SHARD_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/stored_tables.h"
#include "core/checkpoint/table_columns.h"
#include "core/cluster/placement.h"
#include "core/table/row_id.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Makes messages of a few MiB of rows, in the memory of one partition's rows of one table. Not
// thread-safe.
class ShardRows {
 public:
  // Null: the placement, which is the request's, has no tables, or its shard no partitions of rows.
  // `bundle` outlives this. Errors of StoredTables; INVALID_ARGUMENT also: a table has become
  // another one.
  static absl::StatusOr<std::unique_ptr<ShardRows>> Open(const v1::InitializeShardRequest& request,
                                                         const Placement& placement,
                                                         const BundleReader* bundle);

  // Adds to the first message of a stream what it says of rows.
  void Begin(v1::InitializeChunk* first) const;

  // The next message, or nothing after the last one. Errors of StoredTables::Read.
  absl::StatusOr<std::optional<v1::InitializeChunk>> Next();

 private:
  struct Table {
    const StoredTable* stored = nullptr;  // null: the snapshot has none
    std::vector<TableSlot> slots;
  };

  ShardRows(StoredTables stored, RowPartitionRun run)
      : stored_(std::move(stored)), run_(run), partition_(run.first) {}

  // Goes on to the next rows; false: there are none.
  absl::StatusOr<bool> Advance();
  // Takes rows of the columns into the message, so many bytes or all; how many bytes.
  size_t Take(size_t bytes, v1::InitializeChunk::Rows* rows);

  const StoredTables stored_;
  const RowPartitionRun run_;
  std::vector<Table> tables_;
  // What is to be read next.
  uint32_t partition_;
  size_t table_ = 0;
  // What was read, and the first of its rows that is not taken.
  uint32_t read_partition_ = 0;
  size_t read_table_ = 0;
  TableColumns columns_;
  size_t taken_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SHARD_ROWS_H_
