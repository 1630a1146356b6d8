// Watches the directory of a stream, and hands its new files to the coordinator.
#ifndef KEELSON_CHIEF_LIFECYCLE_STREAM_WATCH_H_
#define KEELSON_CHIEF_LIFECYCLE_STREAM_WATCH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/coordination/stream_intake.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/trouble_log.h"
#include "core/data/stream/stream_directory.h"

namespace keelson {

// Runs on a thread of its own, as a large file is read once before its records are known. Run may
// be called by one thread; status() is thread-safe.
class StreamWatch {
 public:
  // `directory`: null, and Run does nothing. All outlive this.
  StreamWatch(const StreamDirectory* directory, StreamIntake* intake, const Clock* clock)
      : directory_(directory),
        intake_(intake),
        trouble_("looking for files of the stream", clock) {}

  // Looks for files until `end` is raised or a file is none that can be trained on. A directory
  // that cannot be read at the moment is logged, and looked at again. Call it while the job trains.
  void Run(const StopSignal& end);
  // Looks once. Errors: those of Run that end it.
  absl::Status Look();

  // Why the job cannot go on with its stream; OK: it can. INVALID_ARGUMENT, DATA_LOSS,
  // FAILED_PRECONDITION: a file is none of this format (StreamDirectory::Open).
  absl::Status status() const;

 private:
  // Adds the files that are there and not known.
  absl::Status AddFiles();

  const StreamDirectory* const directory_;
  StreamIntake* const intake_;
  // Used by Run's thread alone.
  TroubleLog trouble_;
  std::string empty_;  // the newest file without records

  mutable Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_STREAM_WATCH_H_
