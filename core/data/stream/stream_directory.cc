#include "core/data/stream/stream_directory.h"

#include <set>
#include <vector>

#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/data/data_files.h"
#include "core/data/open_record_files.h"

namespace keelson {
namespace {

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Adds the names of the files that match; nothing is an error here, as files are yet to come.
absl::Status AddNames(const std::string& directory, const std::string& pattern,
                      FileSystem* file_system, std::set<std::string>* names) {
  const absl::StatusOr<std::vector<std::string>> paths =
      FindDataFiles(directory, {pattern}, "data.train_files", file_system);
  if (absl::IsNotFound(paths.status())) return absl::OkStatus();
  RETURN_IF_ERROR(paths.status());
  for (const std::string& path : *paths) names->insert(NameOf(path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<std::string>> StreamDirectory::FileBehind(
    const std::string& newest) const {
  std::set<std::string> train, others = {config_.stream().end_file()};
  for (const std::string& pattern : config_.train_files()) {
    RETURN_IF_ERROR(AddNames(config_.data_dir(), pattern, file_system_, &train));
  }
  for (const std::string& pattern : config_.eval_files()) {
    RETURN_IF_ERROR(AddNames(config_.data_dir(), pattern, file_system_, &others));
  }
  for (auto name = train.upper_bound(newest); name != train.end(); ++name) {
    if (!others.contains(*name)) return *name;
  }
  return std::nullopt;
}

absl::StatusOr<bool> StreamDirectory::HasEnded() const {
  return file_system_->Exists(PathOf(config_.stream().end_file()));
}

absl::StatusOr<std::shared_ptr<const FileRecords>> StreamDirectory::Open(
    const std::string& name) const {
  return OpenFileRecords(config_, schema_, {PathOf(name)}, file_system_);
}

std::string StreamDirectory::PathOf(const std::string& name) const {
  return JoinPath(config_.data_dir(), name);
}

}  // namespace keelson
