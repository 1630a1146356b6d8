// The initial values that come with a script's proposal, on their way into the model directory.
#ifndef KEELSON_CHIEF_PROPOSAL_RECEIVED_VALUES_H_
#define KEELSON_CHIEF_PROPOSAL_RECEIVED_VALUES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

// A file of its own name, which becomes the job's (ProposedValuesPath) only when the chief owns the
// model directory: until then another job may have it. Removed when that does not happen. Used by
// one thread at a time.
class ReceivedValues {
 public:
  // `name`: of this proposal alone. `file_system` outlives this. Errors of file_system.h.
  static absl::StatusOr<std::unique_ptr<ReceivedValues>> Create(FileSystem* file_system,
                                                                const std::string& model_dir,
                                                                absl::string_view name);
  ~ReceivedValues();
  ReceivedValues(const ReceivedValues&) = delete;
  ReceivedValues& operator=(const ReceivedValues&) = delete;

  int64_t bytes() const { return bytes_; }
  absl::Status Append(absl::string_view part);
  // All parts are there. The last call of those that write.
  absl::Status Finish();

  // Puts the file in the place of the one that is there, durably.
  absl::Status Place();

 private:
  ReceivedValues(FileSystem* file_system, std::string model_dir, std::string path,
                 std::unique_ptr<AppendFile> file);

  FileSystem* const file_system_;
  const std::string model_dir_;
  const std::string path_;
  std::unique_ptr<AppendFile> file_;  // null: finished
  int64_t bytes_ = 0;
  bool placed_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_PROPOSAL_RECEIVED_VALUES_H_
