#include "core/client/transfer_plan.h"

#include <algorithm>

namespace keelson {
namespace {

size_t PullBytes(const PlannedBlock& block) { return EncodedBytes(block.pull, block.num_elements); }

void Append(const PlannedBlock& block, PlannedMessage* message) {
  if (message->blocks.empty() || message->blocks.back().partition != block.partition) {
    message->ranges.push_back({block.partition, block.block, 0, block.push, block.pull});
  }
  ++message->ranges.back().num_blocks;
  message->blocks.push_back(block);
  message->push_bytes += PushBytes(block);
  message->pull_bytes += PullBytes(block);
}

bool Fits(const PlannedMessage& message, const PlannedBlock& block) {
  return message.push_bytes + PushBytes(block) <= kBulkPayloadBytes &&
         message.pull_bytes + PullBytes(block) <= kBulkPayloadBytes;
}

// The shard's partitions, those of the model's last variable first.
std::vector<int> BackwardPartitions(const Placement& placement, int shard,
                                    absl::Span<const int> positions) {
  std::vector<int> partitions = placement.PartitionsOf(shard);
  const auto position = [&](int p) {
    return positions[static_cast<size_t>(placement.partition(p).variable)];
  };
  std::stable_sort(partitions.begin(), partitions.end(),
                   [&](int a, int b) { return position(a) > position(b); });
  return partitions;
}

PlannedBlock PlanBlock(const Placement& placement, int p, int64_t b, int variable,
                       const VariableFormats& formats) {
  PlannedBlock block;
  block.partition = static_cast<uint32_t>(p);
  block.block = static_cast<uint32_t>(b);
  block.variable = variable;
  block.first_element = placement.PartitionFirstElement(p) + b * placement.block_elements();
  block.num_elements = placement.BlockElements(p, b);
  block.push = formats.push;
  block.pull = formats.pull;
  if (block.push == WireFormat::kTopK) {
    block.top_k_count = TopKCount(formats.top_k_fraction, block.num_elements);
  }
  return block;
}

}  // namespace

size_t PushBytes(const PlannedBlock& block) {
  return block.push == WireFormat::kTopK ? TopKBytes(block.top_k_count)
                                         : EncodedBytes(block.push, block.num_elements);
}

std::vector<PlannedMessage> PlanTransfers(const Placement& placement, int shard,
                                          absl::Span<const int> positions,
                                          absl::Span<const VariableFormats> formats) {
  std::vector<PlannedMessage> messages;
  for (const int p : BackwardPartitions(placement, shard, positions)) {
    const int variable = positions[static_cast<size_t>(placement.partition(p).variable)];
    for (int64_t b = 0; b < placement.NumBlocks(p); ++b) {
      const PlannedBlock block =
          PlanBlock(placement, p, b, variable, formats[static_cast<size_t>(variable)]);
      if (messages.empty() || !Fits(messages.back(), block)) messages.emplace_back();
      Append(block, &messages.back());
    }
  }
  return messages;
}

}  // namespace keelson
