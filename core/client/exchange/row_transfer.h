// The rows of one step, or of one pull: what is sent to each shard, and what comes back.
#ifndef KEELSON_CORE_CLIENT_EXCHANGE_ROW_TRANSFER_H_
#define KEELSON_CORE_CLIENT_EXCHANGE_ROW_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/client/exchange/row_message.h"
#include "core/client/plan/row_plan.h"
#include "core/client/plan/transfer_plan.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// Per table a matrix [ids, dim], in the order of the ids.
using RowMatrices = std::vector<std::vector<float>>;

// Which partitions each shard holds, and of what.
struct TablePlan {
  std::vector<PlannedTable> tables;   // empty: there are none, and no RowTransfer is made
  std::vector<RowPartitionRun> held;  // per shard
};

// A shard's row messages: the first rides on the last message of its plan, the others follow it. A
// shard that holds no partitions has none. Used by one thread at a time.
class RowTransfer {
 public:
  // `layout` and `plans` outlive this. The rows of `wanted`, if any, are written into `landing`,
  // whose memory is used again.
  static std::shared_ptr<RowTransfer> ForPull(const TablePlan* layout, const ShardPlans& plans,
                                              std::shared_ptr<const BatchIds> wanted,
                                              RowMatrices landing);
  // Also pushes the gradients of `applied`, which are read here only. `wanted` may be null.
  static std::shared_ptr<RowTransfer> ForPush(const TablePlan* layout, const ShardPlans& plans,
                                              const BatchIds& applied, TableGradients gradients,
                                              std::shared_ptr<const BatchIds> wanted,
                                              RowMatrices landing);

  size_t num_messages(size_t shard) const { return shards_[shard].size(); }
  const std::shared_ptr<const RowMessage>& message(size_t shard, size_t i) const {
    return shards_[shard][i].message;
  }

  // The bytes of the answer's sections, which end its payload. INTERNAL: they are not those that
  // the message asked for.
  absl::StatusOr<uint64_t> CheckAnswer(size_t shard, size_t i,
                                       absl::Span<const RowSection> answer) const;
  // Takes the rows of such an answer of the store; what the store has no row for gets its initial
  // values. The cursor has the bytes. INTERNAL: the presence bits do not fit; some rows are
  // written.
  absl::Status Take(size_t shard, size_t i, absl::Span<const RowSection> answer, uint64_t store_id,
                    ByteCursor* cursor);
  // Whether all rows that are wanted of the shard have come from this store.
  bool AllFrom(size_t shard, uint64_t store_id) const;

  const std::shared_ptr<const BatchIds>& wanted() const { return wanted_; }
  // The rows of `wanted`; complete when all answers have been taken.
  RowMatrices TakeMatrices() { return std::move(landing_); }

 private:
  struct Sent {
    std::shared_ptr<const RowMessage> message;
    uint64_t store_id = 0;  // of the answer whose rows have been taken
  };

  RowTransfer(const TablePlan* layout, std::shared_ptr<const BatchIds> wanted, RowMatrices landing);
  void AddMessages(const ShardPlans& plans, const BatchIds* applied, TableGradients gradients);
  absl::Status TakeSection(const RowSection& section, ByteCursor* cursor);

  const TablePlan& layout_;
  const std::shared_ptr<const BatchIds> wanted_;
  std::vector<std::vector<Sent>> shards_;
  RowMatrices landing_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_EXCHANGE_ROW_TRANSFER_H_
