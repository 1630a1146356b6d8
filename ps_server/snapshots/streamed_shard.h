// A shard's way in and out without a shared directory: as the messages of a stream.
#ifndef KEELSON_PS_SERVER_SNAPSHOTS_STREAMED_SHARD_H_
#define KEELSON_PS_SERVER_SNAPSHOTS_STREAMED_SHARD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/client/services/parameter_service.h"
#include "ps_server/units/block_store.h"

namespace keelson {

// A shard of the blocks in `first` and then in those that `next` yields, in the order of the
// placement. INVALID_ARGUMENT, with the variable and the position: a block is missing, too much, or
// not of its size. Errors of `next`.
absl::StatusOr<std::unique_ptr<BlockStore>> ReceiveShard(BlockStore::Options options,
                                                         const v1::InitializeChunk& first,
                                                         ParameterService::ChunkSource next);

// A file whose bytes go to `sink`, which outlives it. Sync does nothing: whoever takes the bytes
// makes them durable.
std::unique_ptr<AppendFile> FileOn(ParameterService::ByteSink sink);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SNAPSHOTS_STREAMED_SHARD_H_
