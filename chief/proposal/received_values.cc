#include "chief/proposal/received_values.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/initial_values.h"

namespace keelson {
namespace {

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

absl::StatusOr<std::unique_ptr<ReceivedValues>> ReceivedValues::Create(FileSystem* file_system,
                                                                       const std::string& model_dir,
                                                                       absl::string_view name) {
  const std::string path = absl::StrCat(ProposedValuesPath(model_dir), ".", name);
  RETURN_IF_ERROR(file_system->CreateDirectories(FolderOf(path)));
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                   file_system->OpenForAppend(path, /*truncate=*/true));
  return std::unique_ptr<ReceivedValues>(
      new ReceivedValues(file_system, model_dir, path, std::move(file)));
}

ReceivedValues::ReceivedValues(FileSystem* file_system, std::string model_dir, std::string path,
                               std::unique_ptr<AppendFile> file)
    : file_system_(file_system),
      model_dir_(std::move(model_dir)),
      path_(std::move(path)),
      file_(std::move(file)) {}

ReceivedValues::~ReceivedValues() {
  if (placed_) return;
  file_.reset();
  const absl::Status removed = file_system_->Remove(path_);
  if (!removed.ok()) LogWarning("proposed initial values: ", removed.message());
}

absl::Status ReceivedValues::Append(absl::string_view part) {
  RETURN_IF_ERROR(file_->Append(part));
  bytes_ += static_cast<int64_t>(part.size());
  return absl::OkStatus();
}

absl::Status ReceivedValues::Finish() {
  const std::unique_ptr<AppendFile> file = std::move(file_);
  return file->Close();
}

absl::Status ReceivedValues::Place() {
  const std::string place = ProposedValuesPath(model_dir_);
  RETURN_IF_ERROR(file_system_->Rename(path_, place));
  placed_ = true;
  return file_system_->SyncDirectory(FolderOf(place));
}

}  // namespace keelson
