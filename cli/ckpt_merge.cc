#include "cli/ckpt_merge.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/directory_change.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/chain_merge.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/snapshot_chain.h"
#include "core/tensor_files/snapshot_name.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

absl::Status MergeSnapshot(const std::string& name, const std::string& model_dir, std::ostream* out,
                           ForeignPaths foreign) {
  ASSIGN_OR_RETURN(const std::string source, ResolveSnapshot(name, foreign));
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(source));
  ASSIGN_OR_RETURN(const std::optional<v1::SnapshotBase> base, BaseOf(*bundle));
  ASSIGN_OR_RETURN(const int64_t step, bundle->ReadInt64("global_step"));
  StopSignal stop;
  ASSIGN_OR_RETURN(const auto owner, OwnForChange(model_dir, "keelson_ckpt merge", &stop));
  FileSystem* const files = FileSystem::Real();
  CheckpointDirectory directory(files, model_dir, Clock::Real());
  const std::string prefix = directory.SnapshotPrefix(step);
  ASSIGN_OR_RETURN(const bool exists, files->Exists(IndexPath(prefix)));
  if (exists) return absl::AlreadyExistsError(absl::StrCat(prefix, ": exists already"));
  RETURN_IF_ERROR(files->CreateDirectories(model_dir));
  absl::Status status = MergeChain(*bundle, prefix, files);
  if (status.ok()) status = directory.Commit(step, {.keep_max = 0});
  if (!status.ok()) {
    const size_t data_files = bundle->contents().data_sizes.size();
    files->Remove(IndexPath(prefix)).IgnoreError();
    for (size_t f = 0; f < data_files; ++f) {
      files->Remove(DataPath(prefix, f, data_files)).IgnoreError();
    }
    return status;
  }
  *out << "wrote " << prefix << ", " << (base.has_value() ? "merged from" : "a copy of") << " "
       << source;
  if (base.has_value()) *out << ", a delta on " << ToString(*base);
  *out << "\n";
  return absl::OkStatus();
}

}  // namespace keelson
