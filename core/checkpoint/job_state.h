// The state of the job that a snapshot holds beside the tensors, a string tensor.
#ifndef KEELSON_CORE_CHECKPOINT_JOB_STATE_H_
#define KEELSON_CORE_CHECKPOINT_JOB_STATE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/checkpoint/bundle_reader.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Name of the string tensor that holds the v1::JobState.
inline constexpr char kJobStateName[] = "_keelson/job";

// Nothing: the bundle is of another program. DATA_LOSS: its state cannot be read.
// FAILED_PRECONDITION: that is of a newer format.
absl::StatusOr<std::optional<v1::JobState>> ReadJobState(const BundleReader& bundle);

// JobState.snapshot_id; 0: the snapshot has none. Errors of ReadJobState, for a prefix also those
// of BundleReader::Open.
absl::StatusOr<uint64_t> ReadSnapshotId(const BundleReader& bundle);
absl::StatusOr<uint64_t> ReadSnapshotId(const std::string& prefix,
                                        FileSystem* file_system = FileSystem::Real());

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_JOB_STATE_H_
