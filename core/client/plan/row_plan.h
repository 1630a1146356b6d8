// Groups the rows of a batch into messages. Computed for each step, since each batch has other ids.
#ifndef KEELSON_CORE_CLIENT_PLAN_ROW_PLAN_H_
#define KEELSON_CORE_CLIENT_PLAN_ROW_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cluster/placement.h"
#include "core/cluster/transfer_formats.h"
#include "core/table/initial_rows.h"
#include "core/table/row_id.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// A table of the placement, and how its rows travel.
struct PlannedTable {
  std::string name;
  uint64_t salt;
  int64_t dim;
  WireFormat push;
  WireFormat pull;
  InitialRows absent;  // values of rows that do not exist
};

// In the order of placement.tables(). `formats` are in that order; empty: float32. `seed`: the
// job's. INVALID_ARGUMENT: the number of formats differs, or rows cannot have one of them.
absl::StatusOr<std::vector<PlannedTable>> PlanTables(const Placement& placement, uint64_t seed,
                                                     absl::Span<const VariableFormats> formats);

// What a message may READ at most, in bytes of ids: a Pull is 1 MiB with its other fields.
inline constexpr size_t kMostWantedBytes = 768 << 10;

// The ids of a batch, divided into partitions. Immutable.
class BatchIds {
 public:
  // What a batch may have of a partition, over all tables: `kMostWantedBytes` of ids, and this of
  // ids and rows, so that the gradients of any batch and the ids of any other fit into a message.
  static constexpr size_t kMostPartitionBytes = kBulkPayloadBytes - kMostWantedBytes;

  // INVALID_ARGUMENT, with the table: `ids` is not of as many tables, or one's ids are not in row
  // order; or, with the partition, there are too many ids for a message.
  static absl::StatusOr<std::shared_ptr<const BatchIds>> Create(
      absl::Span<const PlannedTable> tables, std::shared_ptr<const RowIds> ids);

  const std::shared_ptr<const RowIds>& ids() const { return ids_; }

  // How many of a table's ids are of each partition of the run.
  absl::Span<const uint32_t> Counts(size_t table, RowPartitionRun run) const {
    return absl::MakeConstSpan(partitions_[table].counts).subspan(run.first, run.count);
  }
  // The positions in the table's ids of those of the run.
  size_t Begin(size_t table, RowPartitionRun run) const {
    return partitions_[table].first[run.first];
  }
  size_t End(size_t table, RowPartitionRun run) const {
    return partitions_[table].first[run.first + run.count];
  }
  absl::Span<const uint64_t> Ids(size_t table, RowPartitionRun run) const {
    const size_t begin = Begin(table, run);
    return absl::MakeConstSpan((*ids_)[table]).subspan(begin, End(table, run) - begin);
  }

  // Upper bounds of the bytes of one partition.
  struct Bytes {
    size_t ids = 0;
    size_t gradients = 0;
    size_t values = 0;
  };
  const Bytes& BytesOf(uint32_t partition) const { return bytes_[partition]; }

 private:
  struct Partitions {
    std::array<uint32_t, kRowPartitions> counts = {};
    std::array<size_t, kRowPartitions + 1> first = {};
  };

  explicit BatchIds(std::shared_ptr<const RowIds> ids) : ids_(std::move(ids)) {}
  absl::Status Divide(absl::Span<const PlannedTable> tables);
  absl::Status CheckBytes() const;

  const std::shared_ptr<const RowIds> ids_;
  std::vector<Partitions> partitions_;  // by table
  std::array<Bytes, kRowPartitions> bytes_ = {};
};

// The runs of the `held` partitions whose rows travel in one message each, all of them together:
// the gradients of `applied` and the ids of `wanted`, either of which may be null. The first run
// rides on a message that has `request_bytes` and `answer_bytes` of payload already, and may be
// empty.
std::vector<RowPartitionRun> PlanRowRuns(RowPartitionRun held, const BatchIds* applied,
                                         const BatchIds* wanted, size_t request_bytes,
                                         size_t answer_bytes);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_PLAN_ROW_PLAN_H_
