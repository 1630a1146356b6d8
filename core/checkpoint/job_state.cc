#include "core/checkpoint/job_state.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/shard_state.h"

namespace keelson {

absl::StatusOr<std::optional<v1::JobState>> ReadJobState(const BundleReader& bundle) {
  if (!bundle.Contains(kJobStateName)) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string bytes, bundle.ReadString(kJobStateName));
  const std::string where = absl::StrCat(bundle.prefix(), ": ", kJobStateName);
  v1::JobState state;
  if (!state.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(where, ": not a JobState"));
  }
  RETURN_IF_ERROR(CheckFormat(where, kJobStateFormat, state.format()));
  return state;
}

absl::StatusOr<uint64_t> ReadSnapshotId(const BundleReader& bundle) {
  ASSIGN_OR_RETURN(const std::optional<v1::JobState> state, ReadJobState(bundle));
  return state.has_value() ? state->snapshot_id() : 0;
}

absl::StatusOr<uint64_t> ReadSnapshotId(const std::string& prefix, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle,
                   BundleReader::Open(prefix, file_system));
  return ReadSnapshotId(*bundle);
}

}  // namespace keelson
