// An output file that is seen complete or not at all.
#ifndef KEELSON_CLI_PENDING_FILE_H_
#define KEELSON_CLI_PENDING_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace keelson {

// A name beside `path` to write under, and the step that gives the file its own name. Destroyed
// before Commit succeeded, it removes what was written.
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

#endif  // KEELSON_CLI_PENDING_FILE_H_
