// Follows the event files of a directory (core/summary/event_writer.h).
#ifndef KEELSON_DASHBOARD_RUNS_EVENT_TAIL_H_
#define KEELSON_DASHBOARD_RUNS_EVENT_TAIL_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "dashboard/runs/changed_file.h"
#include "dashboard/runs/time_series.h"

namespace keelson {

// Not thread-safe. An incomplete record is read later. The rest of a file after a damaged record is
// not read; other files are.
class EventTail {
 public:
  using TakeScalar = absl::FunctionRef<void(absl::string_view tag, const SeriesPoint& point)>;

  EventTail(FileSystem* file_system, std::string directory)
      : file_system_(file_system), directory_(std::move(directory)) {}

  // Reads about `max_bytes` of new records, the oldest file first, and passes on the scalars. True:
  // there is more.
  bool Poll(size_t max_bytes, TakeScalar take);

  // The error of the newest read: DATA_LOSS with file and offset, or as file_system.h. A missing
  // directory is OK.
  const absl::Status& trouble() const { return trouble_; }

 private:
  struct File {
    FileTail tail;
    int failures = 0;  // of the next record
    bool damaged = false;
  };

  void FindFiles();
  bool PollFile(size_t max_bytes, File* file, TakeScalar take);
  // False: the next record is not complete, or damaged.
  bool TakeRecord(File* file, size_t* consumed, TakeScalar take);
  void NoteDamage(File* file, size_t offset);

  FileSystem* const file_system_;
  const std::string directory_;
  std::map<std::string, File> files_;  // by name
  absl::Status trouble_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_EVENT_TAIL_H_
