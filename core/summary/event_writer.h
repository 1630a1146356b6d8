// Event files for TensorBoard: TFRecords of v1::Event.
// Format: tensorflow/core/util/events_writer.h.
#ifndef KEELSON_CORE_SUMMARY_EVENT_WRITER_H_
#define KEELSON_CORE_SUMMARY_EVENT_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "keelson/v1/event.pb.h"

namespace keelson {

// Thread-safe. What was added is in the file at once, readable by others; Flush makes it durable.
// Errors are those of file.h.
class EventWriter {
 public:
  // Creates the directory, where it is missing, and a new file in it,
  // "events.out.tfevents.<unix seconds>.<host>" (".1", ".2", … where that exists already), and
  // writes the record that tells the version. `clock` outlives the writer.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Create(const std::string& directory,
                                                             const Clock* clock);

  // One event with all the (tag, value) pairs.
  absl::Status AddScalars(int64_t step, absl::Span<const std::pair<std::string, double>> scalars);
  absl::Status Flush();

  const std::string& path() const { return path_; }

 private:
  EventWriter(std::string path, std::unique_ptr<AppendFile> file, const Clock* clock);

  absl::Status Write(v1::Event event);

  const std::string path_;
  const Clock* const clock_;
  Mutex mu_;
  const std::unique_ptr<AppendFile> file_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_EVENT_WRITER_H_
