// How the blocks of a shard are grouped into messages. Computed once per placement.
#ifndef KEELSON_CORE_CLIENT_TRANSFER_PLAN_H_
#define KEELSON_CORE_CLIENT_TRANSFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "core/cluster/placement.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Payload that senders keep to; a block is never divided, so a message holds at least one.
inline constexpr int64_t kBulkPayloadBytes = 4 << 20;

// Where one block lies in the worker's tensors.
struct PlannedBlock {
  uint32_t partition;
  uint32_t block;
  int variable;
  int64_t first_element;  // within the variable
  int64_t num_elements;
};

struct PlannedMessage {
  std::vector<v1::BlockRange> ranges;
  std::vector<PlannedBlock> blocks;  // in the order of `ranges`
  int64_t num_elements = 0;
};

// The messages that together carry every block of `shard` once.
std::vector<PlannedMessage> PlanTransfers(const Placement& placement, int shard);

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_TRANSFER_PLAN_H_
