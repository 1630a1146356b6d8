// Finds the blocks that a bulk message addresses.
#ifndef KEELSON_PS_SERVER_UNITS_ADDRESSED_BLOCKS_H_
#define KEELSON_PS_SERVER_UNITS_ADDRESSED_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/wire/bulk_messages.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// A block with its position and size, and the formats of its range.
struct AddressedBlock {
  Block* block = nullptr;
  uint32_t partition = 0;
  uint32_t index = 0;
  int64_t elements = 0;
  WireFormat format = WireFormat::kFloat32;
  WireFormat pull_format = WireFormat::kFloat32;
  bool absent = false;  // a push has no gradient of it
};

// The blocks of `ranges` in order; they live as long as the store. INVALID_ARGUMENT: a block is not
// on this shard, or is listed twice.
absl::StatusOr<std::vector<AddressedBlock>> ResolveBlocks(const ShardStore& store,
                                                          absl::Span<const BlockRange> ranges);

// INVALID_ARGUMENT: "variable dense/kernel, block 2: <problem>".
absl::Status ErrorAt(const ShardStore& store, const AddressedBlock& block,
                     absl::string_view problem);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_ADDRESSED_BLOCKS_H_
