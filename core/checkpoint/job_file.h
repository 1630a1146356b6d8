// The file `JOB` in a model directory (v1::JobFile): who may write there, and what is trained
// there. Readers of the model do not need it.
#ifndef KEELSON_CORE_CHECKPOINT_JOB_FILE_H_
#define KEELSON_CORE_CHECKPOINT_JOB_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "keelson/v1/job_file.pb.h"

namespace keelson {

inline constexpr uint32_t kJobFileFormat = 1;

// "MODEL_DIR/JOB", and the file beside it that the owner has locked.
std::string JobFilePath(absl::string_view model_dir);
std::string JobLockPath(absl::string_view model_dir);

std::string FormatJobFile(const v1::JobFile& job);
// `path` is for messages. FAILED_PRECONDITION: a newer build has written it; both formats.
// DATA_LOSS: it is no job file.
absl::StatusOr<v1::JobFile> ParseJobFile(const std::string& path, const std::string& text);

struct StoredJobFile {
  v1::JobFile job;
  std::string version;  // for FileSystem::ReplaceIf
};

// Returns nothing if there is none. DATA_LOSS: also above 1 MiB. Errors of ParseJobFile, of
// file_system.h.
absl::StatusOr<std::optional<StoredJobFile>> ReadJobFile(FileSystem* file_system,
                                                         const std::string& model_dir);

// "job mnist, chief-0 on host-1 (pid 17), since 2026-11-23T15:00:00+00:00".
std::string DescribeOwner(const v1::JobFile& job);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_JOB_FILE_H_
