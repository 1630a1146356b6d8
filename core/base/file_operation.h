// The operations on files that are under way in this process: what it waits for when it hangs.
#ifndef KEELSON_CORE_BASE_FILE_OPERATION_H_
#define KEELSON_CORE_BASE_FILE_OPERATION_H_

#include <list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {

// One operation, from its construction to its destruction. Thread-safe.
class FileOperation {
 public:
  // `name` is that of the system's call, "fsync". Both texts outlive this.
  FileOperation(absl::string_view name, absl::string_view path);
  ~FileOperation();
  FileOperation(const FileOperation&) = delete;
  FileOperation& operator=(const FileOperation&) = delete;

  // "fsync of /model/status.json for 12s" of each that has been under way for `at_least`, in the
  // order of their beginning.
  static std::vector<std::string> UnderWay(absl::Duration at_least);

 private:
  struct Entry {
    absl::string_view name;
    absl::string_view path;
    absl::Duration since;  // on the monotonic clock
  };
  struct Registry;

  static Registry* OfProcess();

  std::list<Entry>::iterator entry_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_FILE_OPERATION_H_
