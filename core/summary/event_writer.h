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
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/summary/event_thinning.h"
#include "core/summary/histogram.h"
#include "core/summary/hparams.h"
#include "keelson/v1/event.pb.h"

namespace keelson {

// Kinds of event files, the beginnings of their names. TensorBoard takes each directory with files
// of the first kind for a run; the second kind is for the dashboard alone.
inline constexpr char kTensorBoardEvents[] = "events.out.tfevents";
inline constexpr char kDashboardEvents[] = "events.keelson";

v1::Event HistogramEvent(int64_t step,
                         absl::Span<const std::pair<std::string, Histogram>> histograms);

// Thread-safe. Added events are in the file at once, readable by others; Flush makes them durable.
// Errors are those of file_system.h. An event that cannot be written is dropped. After an error, or
// when the file was removed, the next event opens another file: readers read all files in the
// directory, and nothing after half a record in a file is readable. A file that is full
// (EventLimits) is followed by another, and the older ones are thinned (event_thinning.h), also
// those of earlier processes; where that fails, a warning is logged, and it is tried again with the
// next file.
class EventWriter {
 public:
  // Creates the directory, where it is missing, and a file in it, "<kind>.<unix seconds>.<host>",
  // and writes the record that tells the version. The seconds are those of the clock, or more where
  // a file of this kind would otherwise be as new: names sort by age, as TensorBoard reads them.
  // `clock` and `file_system` outlive the writer.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Create(
      const std::string& directory, const Clock* clock,
      FileSystem* file_system = FileSystem::Real(), std::string kind = kTensorBoardEvents,
      const EventLimits& limits = {});

  // The same, but the first event makes the file, in a directory that is there: for those whose
  // work does not depend on it.
  static std::unique_ptr<EventWriter> CreateLazily(const std::string& directory, const Clock* clock,
                                                   FileSystem* file_system = FileSystem::Real(),
                                                   std::string kind = kTensorBoardEvents);

  // Writes one event with all the (tag, value) pairs. NOT_FOUND: the directory is gone; it is not
  // created again.
  absl::Status AddScalars(int64_t step, absl::Span<const std::pair<std::string, double>> scalars);
  // Writes one event with histograms.
  absl::Status AddHistograms(int64_t step,
                             absl::Span<const std::pair<std::string, Histogram>> histograms);
  // Writes a text about the whole run, shown as Markdown.
  absl::Status AddText(absl::string_view tag, absl::string_view text);
  // Writes the run's settings, with the present time as its start.
  absl::Status AddHparams(const Hparams& hparams);
  // Says that training goes on after `step`: readers drop later points of the run, which an earlier
  // process has written. TensorBoard does so from a run's second such event on.
  absl::Status AddSessionStart(int64_t step);
  // Says that the run is over.
  absl::Status AddSessionEnd(bool success);
  // Writes an event as it is, with the present time if it has none.
  absl::Status AddEvent(v1::Event event);
  absl::Status Flush();

  // The path of the newest file.
  std::string path() const;

 private:
  EventWriter(std::string directory, const Clock* clock, FileSystem* file_system, std::string kind,
              const EventLimits& limits)
      : directory_(std::move(directory)),
        clock_(clock),
        file_system_(file_system),
        kind_(std::move(kind)),
        limits_(limits) {}

  absl::Status Write(v1::Event event);
  // Opens the next file, and thins those before it.
  absl::Status OpenNextFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Append(v1::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string directory_;
  const Clock* const clock_;
  FileSystem* const file_system_;
  const std::string kind_;
  const EventLimits limits_;

  mutable Mutex mu_;
  std::string path_ ABSL_GUARDED_BY(mu_);
  // Null before the first event, after an error, and when the file is full.
  std::unique_ptr<AppendFile> file_ ABSL_GUARDED_BY(mu_);
  int64_t file_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_EVENT_WRITER_H_
