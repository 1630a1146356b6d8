#include "bench/message_plan.h"

#include <numeric>
#include <utility>
#include <vector>

namespace keelson::bench {
namespace {

// Each block becomes a message of its own.
std::vector<PlannedMessage> SplitByBlock(const std::vector<PlannedMessage>& messages) {
  std::vector<PlannedMessage> split;
  for (const PlannedMessage& message : messages) {
    for (const PlannedBlock& block : message.blocks) {
      PlannedMessage part;
      part.ranges.push_back({block.partition, block.block, 1, block.push, block.pull});
      part.blocks.push_back(block);
      part.push_bytes = PushBytes(block);
      part.pull_bytes = EncodedBytes(block.pull, block.num_elements);
      split.push_back(std::move(part));
    }
  }
  return split;
}

}  // namespace

ShardPlans PlanMessages(const LoadPlan& plan) {
  std::vector<size_t> positions(plan.placement.variables().size());
  std::iota(positions.begin(), positions.end(), 0);
  const bool one_block = plan.scenario.model == "flat" &&
                         plan.scenario.message_bytes < Placement::kDefaultBlockElements *
                                                           static_cast<int64_t>(sizeof(float)) * 2;
  ShardPlans shards;
  for (size_t s = 0; s < plan.placement.num_shards(); ++s) {
    shards.push_back(PlanTransfers(plan.placement, s, positions, plan.formats));
    if (one_block) shards.back() = SplitByBlock(shards.back());
  }
  return shards;
}

}  // namespace keelson::bench
