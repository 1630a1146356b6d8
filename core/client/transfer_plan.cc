#include "core/client/transfer_plan.h"

namespace keelson {
namespace {

void Append(const PlannedBlock& block, PlannedMessage* message) {
  if (message->blocks.empty() || message->blocks.back().partition != block.partition) {
    v1::BlockRange& range = message->ranges.emplace_back();
    range.set_partition(block.partition);
    range.set_first_block(block.block);
  }
  v1::BlockRange& range = message->ranges.back();
  range.set_num_blocks(range.num_blocks() + 1);
  message->blocks.push_back(block);
  message->num_elements += block.num_elements;
}

}  // namespace

std::vector<PlannedMessage> PlanTransfers(const Placement& placement, int shard) {
  constexpr int64_t kMaxElements = kBulkPayloadBytes / static_cast<int64_t>(sizeof(float));
  std::vector<PlannedMessage> messages;
  for (const int p : placement.PartitionsOf(shard)) {
    const int64_t first = placement.PartitionFirstElement(p);
    for (int64_t b = 0; b < placement.NumBlocks(p); ++b) {
      const int64_t elements = placement.BlockElements(p, b);
      if (messages.empty() || messages.back().num_elements + elements > kMaxElements) {
        messages.emplace_back();
      }
      Append({static_cast<uint32_t>(p), static_cast<uint32_t>(b),
              placement.partitions()[static_cast<size_t>(p)].variable,
              first + b * placement.block_elements(), elements},
             &messages.back());
    }
  }
  return messages;
}

}  // namespace keelson
