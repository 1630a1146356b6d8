#include "ps_server/snapshots/snapshot_files.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "ps_server/snapshots/shard_files.h"

namespace keelson {
namespace {

std::string NoSharedDirectory(absl::string_view call, absl::string_view found) {
  return absl::StrCat(call, ": expected a directory that all roles share (--model_dir), found ",
                      found, "; without one: chief --checkpoint_writer=chief");
}

}  // namespace

SnapshotFiles::SnapshotFiles(const std::string& model_dir, const Clock* clock,
                             FileSystem* file_system)
    : confined_(model_dir),
      file_system_(file_system != nullptr ? file_system : &confined_),
      directory_(file_system_, model_dir, clock) {}

absl::Status SnapshotFiles::Check(absl::string_view call, int64_t step) const {
  if (directory_.model_dir().empty()) {
    return absl::FailedPreconditionError(NoSharedDirectory(call, "none"));
  }
  if (step >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(call, ": step: expected at least 0, found ", step));
}

absl::StatusOr<std::unique_ptr<BundleDataWriter>> SnapshotFiles::Create(
    const v1::WriteSnapshotRequest& request) {
  constexpr absl::string_view kCall = "WriteSnapshot";
  RETURN_IF_ERROR(Check(kCall, request.step()));
  if (request.data_shard() >= request.num_data_shards()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCall, ": data_shard: expected less than num_data_shards (",
                     request.num_data_shards(), "), found ", request.data_shard()));
  }
  const std::string path = DataPath(directory_.SnapshotPrefix(request.step()), request.data_shard(),
                                    request.num_data_shards());
  absl::StatusOr<std::unique_ptr<BundleDataWriter>> writer = BundleDataWriter::Create(
      file_system_, PendingPath(path, request.header().chief_term(), request.cut_id()),
      request.data_shard());
  if (absl::IsNotFound(writer.status())) {
    return absl::NotFoundError(NoSharedDirectory(
        kCall, absl::StrCat("that ", directory_.model_dir(), " does not exist here")));
  }
  return writer;
}

absl::StatusOr<std::unique_ptr<ShardStore>> SnapshotFiles::Restore(ShardStore::Options options,
                                                                   int64_t step, int threads) {
  RETURN_IF_ERROR(Check("Initialize", step));
  return RestoreShard(std::move(options), directory_.FindSnapshot(step), file_system_, threads);
}

}  // namespace keelson
