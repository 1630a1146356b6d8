#include "core/tensor_files/pending_file.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {

PendingFile::PendingFile(std::string path)
    : path_(std::move(path)), temporary_path_(absl::StrCat(path_, ".tempstate", RandomId())) {}

PendingFile::~PendingFile() {
  if (!committed_) RemoveFile(temporary_path_).IgnoreError();
}

absl::Status PendingFile::Commit() {
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file,
                   FileSystem::Real()->OpenForAppend(temporary_path_, /*truncate=*/false));
  RETURN_IF_ERROR(file->Close());
  RETURN_IF_ERROR(RenameFile(temporary_path_, path_));
  committed_ = true;
  return SyncDirectory(DirectoryOf(path_));
}

}  // namespace keelson
