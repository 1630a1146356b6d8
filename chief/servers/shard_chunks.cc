#include "chief/servers/shard_chunks.h"

#include "absl/base/config.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "InitializeChunk.Block.elements is little-endian"
#endif

constexpr size_t kChunkBytes = 4 << 20;
// What a block takes beside its elements, in a message and in memory.
constexpr size_t kBlockBytes = 64;

}  // namespace

absl::StatusOr<std::optional<v1::InitializeChunk>> ShardChunks::Next() {
  v1::InitializeChunk chunk;
  size_t bytes = 0;
  while (bytes < kChunkBytes && partition_ < partitions_.size()) {
    ASSIGN_OR_RETURN(*chunk.add_blocks(), make_(position()));
    bytes += kBlockBytes + chunk.blocks().rbegin()->elements().size();
    Advance();
  }
  if (chunk.blocks().empty()) return std::nullopt;
  return chunk;
}

ShardChunks::Position ShardChunks::position() const {
  const size_t p = partitions_[partition_];
  return {placement_->partition(p).variable,
          placement_->PartitionFirstElement(p) + block_ * placement_->block_elements(),
          static_cast<size_t>(placement_->BlockElements(p, block_))};
}

void ShardChunks::Advance() {
  if (++block_ < placement_->NumBlocks(partitions_[partition_])) return;
  block_ = 0;
  ++partition_;
}

}  // namespace keelson
