// Groups the blocks of a shard into messages. Computed once per placement.
#ifndef KEELSON_CORE_CLIENT_PLAN_TRANSFER_PLAN_H_
#define KEELSON_CORE_CLIENT_PLAN_TRANSFER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/cluster/placement.h"
#include "core/cluster/transfer_formats.h"
#include "core/wire/bulk_messages.h"

namespace keelson {

// One block: its position in the worker's arrays, and its wire formats.
struct PlannedBlock {
  uint32_t partition = 0;
  uint32_t block = 0;
  size_t variable = 0;        // position in the model
  int64_t first_element = 0;  // within the variable
  int64_t num_elements = 0;
  WireFormat push = WireFormat::kFloat32;
  WireFormat pull = WireFormat::kFloat32;
  int64_t top_k_count = 0;  // elements of a kTopK push
  size_t push_offset = 0;   // of its bytes in the variable's encoded gradient; see WireOf
};

struct PlannedMessage {
  // As a push has them; adjacent blocks of a partition are one range.
  std::vector<BlockRange> ranges;
  std::vector<PlannedBlock> blocks;  // in the order of `ranges`
  size_t push_bytes = 0;             // payload of a push
  size_t pull_bytes = 0;             // payload of a pull of everything
};

// Per shard.
using ShardPlans = std::vector<std::vector<PlannedMessage>>;

// One message of a plan.
struct MessageId {
  size_t shard = 0;
  size_t message = 0;

  friend bool operator==(const MessageId&, const MessageId&) = default;
};

// Bytes of the block in a push, and in an answer with values.
size_t PushBytes(const PlannedBlock& block);
size_t PullBytes(const PlannedBlock& block);
// The offset of the block's first byte in the variable's encoded values, which are one array.
size_t PullOffset(const PlannedBlock& block);

// All blocks of the placement, partition by partition: those of a variable follow each other in
// its elements. `positions[v]` is where the placement's variable v stands in the model, `formats`
// are by that position.
std::vector<PlannedBlock> PlanBlocks(const Placement& placement, absl::Span<const size_t> positions,
                                     absl::Span<const VariableFormats> formats);

// The messages that together carry every block of `shard` once. The last variable of the model
// comes first, since backpropagation completes its gradient first. `positions` and `formats` as
// PlanBlocks has them.
std::vector<PlannedMessage> PlanTransfers(const Placement& placement, size_t shard,
                                          absl::Span<const size_t> positions,
                                          absl::Span<const VariableFormats> formats);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_PLAN_TRANSFER_PLAN_H_
