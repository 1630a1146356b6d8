// The file `DONE` in the model directory: a program that finds it at its start exits at once. One
// line of JSON: {"config_hash":"<16 hex digits>","step":100}
#ifndef KEELSON_CORE_CHECKPOINT_DONE_MARKER_H_
#define KEELSON_CORE_CHECKPOINT_DONE_MARKER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

struct DoneMarker {
  int64_t step = 0;
  uint64_t config_hash = 0;

  friend bool operator==(const DoneMarker& a, const DoneMarker& b) {
    return a.step == b.step && a.config_hash == b.config_hash;
  }
};

// Atomic and durable.
absl::Status WriteDoneMarker(FileSystem* file_system, absl::string_view model_dir,
                             const DoneMarker& marker);
// Returns nothing if the job is not done. DATA_LOSS: the file is not such a marker, or above 64
// KiB. UNAVAILABLE: its directory names it, but it is not there to be opened: to go on would remove
// it, and the others of a job that is done do not come back.
absl::StatusOr<std::optional<DoneMarker>> ReadDoneMarker(
    absl::string_view model_dir, FileSystem* file_system = FileSystem::Real());
// A missing marker is fine.
absl::Status RemoveDoneMarker(FileSystem* file_system, absl::string_view model_dir);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_DONE_MARKER_H_
