#include "core/client/plan/transfer_plan.h"

#include <algorithm>

namespace keelson {
namespace {

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

PlannedBlock PlanBlock(const Placement& placement, size_t p, int64_t b, size_t variable,
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

size_t RoundUpTo4(size_t bytes) { return (bytes + 3) / 4 * 4; }

}  // namespace

size_t PushBytes(const PlannedBlock& block) {
  return block.push == WireFormat::kTopK ? TopKBytes(block.top_k_count)
                                         : EncodedBytes(block.push, block.num_elements);
}

size_t PullBytes(const PlannedBlock& block) { return EncodedBytes(block.pull, block.num_elements); }

size_t PullOffset(const PlannedBlock& block) {
  return EncodedBytes(block.pull, block.first_element);
}

std::vector<PlannedBlock> PlanBlocks(const Placement& placement, absl::Span<const size_t> positions,
                                     absl::Span<const VariableFormats> formats) {
  std::vector<PlannedBlock> blocks;
  for (size_t p = 0; p < placement.partitions().size(); ++p) {
    const size_t variable = positions[placement.partition(p).variable];
    for (int64_t b = 0; b < placement.NumBlocks(p); ++b) {
      PlannedBlock block = PlanBlock(placement, p, b, variable, formats[variable]);
      if (block.first_element > 0) {
        block.push_offset = blocks.back().push_offset + RoundUpTo4(PushBytes(blocks.back()));
      }
      blocks.push_back(block);
    }
  }
  return blocks;
}

std::vector<PlannedMessage> PlanTransfers(const Placement& placement, size_t shard,
                                          absl::Span<const size_t> positions,
                                          absl::Span<const VariableFormats> formats) {
  std::vector<PlannedBlock> blocks = PlanBlocks(placement, positions, formats);
  std::erase_if(blocks, [&](const PlannedBlock& block) {
    return placement.partition(block.partition).shard != shard;
  });
  std::stable_sort(blocks.begin(), blocks.end(), [](const PlannedBlock& a, const PlannedBlock& b) {
    return a.variable > b.variable;
  });
  std::vector<PlannedMessage> messages;
  for (const PlannedBlock& block : blocks) {
    if (messages.empty() || !Fits(messages.back(), block)) messages.emplace_back();
    Append(block, &messages.back());
  }
  return messages;
}

}  // namespace keelson
