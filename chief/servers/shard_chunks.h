// The blocks of a shard as the messages of InitializeStreamed.
#ifndef KEELSON_CHIEF_SERVERS_SHARD_CHUNKS_H_
#define KEELSON_CHIEF_SERVERS_SHARD_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/placement.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Makes messages of a few MiB of blocks that are made one by one. Not thread-safe.
class ShardChunks {
 public:
  // Elements [first_element, first_element + num_elements) of a variable, which are one block.
  struct Position {
    size_t variable = 0;
    int64_t first_element = 0;
    size_t num_elements = 0;
  };
  using MakeBlock = std::function<absl::StatusOr<v1::InitializeChunk::Block>(const Position&)>;

  // The blocks of `shard` in the order of the placement, which outlives this.
  ShardChunks(const Placement* placement, size_t shard, MakeBlock make)
      : placement_(placement),
        partitions_(placement->PartitionsOf(shard)),
        make_(std::move(make)) {}

  // The next message, or nothing after the last one. Errors of MakeBlock.
  absl::StatusOr<std::optional<v1::InitializeChunk>> Next();

 private:
  Position position() const;
  void Advance();

  const Placement* const placement_;
  const std::vector<size_t> partitions_;
  const MakeBlock make_;
  // The next block.
  size_t partition_ = 0;
  int64_t block_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SHARD_CHUNKS_H_
