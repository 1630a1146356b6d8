// The state of a shard beside its tensors, a string tensor in a snapshot.
#ifndef KEELSON_CORE_CHECKPOINT_SHARD_STATE_H_
#define KEELSON_CORE_CHECKPOINT_SHARD_STATE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// The newest format of v1::ShardState that this build reads, which it writes where not all shards
// hold rows. Since format 1 the applied sequences are runs by incarnation; before, each block
// listed them. Since format 2 there are tables, since format 3 deltas, since format 4 ghosts, since
// format 5 shards that hold no rows of the tables because others do.
inline constexpr uint32_t kShardStateFormat = 5;
// Written where all shards hold rows of the tables and there are ghosts, in deltas without ghosts,
// in whole snapshots with tables but no ghosts, and without tables, so that earlier builds read
// what they can.
inline constexpr uint32_t kGhostShardStateFormat = 4;
inline constexpr uint32_t kDeltaShardStateFormat = 3;
inline constexpr uint32_t kGhostlessShardStateFormat = 2;
inline constexpr uint32_t kTablelessShardStateFormat = 1;

// The format of v1::JobState. Since format 1 it has the committed round.
inline constexpr uint32_t kJobStateFormat = 1;

// Names of shards' states begin so.
inline constexpr absl::string_view kShardStatePrefix = "_keelson/shard-";

// The name of the string tensor with a shard's v1::ShardState: "_keelson/shard-0-of-2".
std::string ShardStateName(size_t shard, size_t num_shards);

// FAILED_PRECONDITION: "`where`: expected at most format `known`, found `found`: ...".
absl::Status CheckFormat(absl::string_view where, uint32_t known, uint32_t found);

// Reads the state in the tensor `name` of the bundle at `prefix`. DATA_LOSS: `bytes` are none, or
// its runs or tables make no sense. FAILED_PRECONDITION: it is of a newer format.
absl::StatusOr<v1::ShardState> ParseShardState(const std::string& bytes, const std::string& prefix,
                                               const std::string& name);

// What `state.blocks(block)` has applied, whatever the format; of block state.blocks_size() + i:
// what partition i of the shard's partitions of rows has applied.
std::vector<v1::ShardState::WorkerSequence> AppliedBy(const v1::ShardState& state, int block);

// The bytes of a message that is to be the tensor `name`. RESOURCE_EXHAUSTED: they are more than
// protobuf can read back (2 GiB).
absl::StatusOr<std::string> SerializeState(
    const google::protobuf::MessageLite& message, absl::string_view name,
    size_t most_bytes = static_cast<size_t>(std::numeric_limits<int32_t>::max()));

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_SHARD_STATE_H_
