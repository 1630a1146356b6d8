// Receives and sends a shard as the messages of a stream, where roles share no directory.
#ifndef KEELSON_PS_SERVER_SNAPSHOTS_STREAMED_SHARD_H_
#define KEELSON_PS_SERVER_SNAPSHOTS_STREAMED_SHARD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/client/services/parameter_control.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// What the blocks of a stream have.
enum class ReceivedBlocks { kWithSlots, kInitialValues };

// Makes a shard of the blocks in `first` and in the chunks that `next` yields, in the order of the
// placement, and the rows that follow (InitializeChunk.Block). INVALID_ARGUMENT, with the variable
// and the position: a block is missing, too much, or not of its size; with the table: rows are not
// of the shard, out of order or not whole. Errors of `next`.
absl::StatusOr<std::unique_ptr<ShardStore>> ReceiveShard(ShardStore::Options options,
                                                         const v1::InitializeChunk& first,
                                                         ParameterControl::ChunkSource next,
                                                         ReceivedBlocks blocks);

// A file whose bytes go to `sink`, which outlives it. Sync does nothing: the receiver makes the
// bytes durable.
std::unique_ptr<AppendFile> FileOn(ParameterControl::ByteSink sink);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SNAPSHOTS_STREAMED_SHARD_H_
