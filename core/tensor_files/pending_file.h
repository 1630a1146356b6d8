// An output file that becomes visible only when it is complete.
#ifndef KEELSON_CORE_TENSOR_FILES_PENDING_FILE_H_
#define KEELSON_CORE_TENSOR_FILES_PENDING_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace keelson {

// Has a temporary name beside `path`, which Commit renames to `path`. If destroyed before Commit
// has succeeded, it removes the file.
class PendingFile {
 public:
  explicit PendingFile(std::string path);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  const std::string& temporary_path() const { return temporary_path_; }

  // Makes the file durable, and renames it over `path`. Errors as core/base/file_system.h.
  absl::Status Commit();

 private:
  const std::string path_;
  const std::string temporary_path_;
  bool committed_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_PENDING_FILE_H_
