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

// Not thread-safe. A record that is not complete yet is waited for. What follows a damaged record
// in a file is not read; the other files are.
class EventTail {
 public:
  using TakeScalar = absl::FunctionRef<void(absl::string_view tag, const SeriesPoint& point)>;

  EventTail(FileSystem* file_system, std::string directory)
      : file_system_(file_system), directory_(std::move(directory)) {}

  // Reads about `max_bytes` of what is new, the oldest file first, and hands on the scalars. True:
  // there is more.
  bool Poll(size_t max_bytes, TakeScalar take);

  // What could not be read: DATA_LOSS with file and offset, or as file_system.h. A directory that
  // is not there is fine.
  const absl::Status& trouble() const { return trouble_; }

 private:
  struct File {
    FileTail tail;
    int failures = 0;  // of the record that is next
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
