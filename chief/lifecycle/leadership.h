// Whether this chief still leads its job: no other chief has called the servers, and no other
// process has the model directory.
#ifndef KEELSON_CHIEF_LIFECYCLE_LEADERSHIP_H_
#define KEELSON_CHIEF_LIFECYCLE_LEADERSHIP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/directory_owner.h"

namespace keelson {

// Thread-safe. Once lost, the leadership does not come back.
class Leadership {
 public:
  // `owner` is the right to write to the model directory; null: nobody else writes there. `stop` is
  // raised when another chief has called a server. Both outlive this.
  Leadership(DirectoryOwner* owner, StopSignal* stop) : owner_(owner), stop_(stop) {}

  // A server has refused a call of this chief with `status`, because another one has called it.
  // Raises `stop`; only the first call counts.
  void NoteReplaced(const absl::Status& status);

  // OK, or ALREADY_EXISTS: who has taken this chief's place, or its model directory. Does not look
  // at the storage.
  absl::Status Check() const;

  // Asks the storage who has the model directory. OK: no other process had it before this call.
  // ALREADY_EXISTS: it is lost. Otherwise errors of file_system.h: nobody knows.
  absl::Status ConfirmDirectory();

  // Whether figures may be written to the model directory. Does not look at the storage.
  bool may_report() const;

  // Whether this chief is an heir (directory_owner.h): it goes on with a job that runs, and has not
  // been able to write to the directory yet.
  bool is_heir() const;

  // The step of the newest snapshot that the directory's job file tells of; 0: none.
  int64_t snapshot_step() const;

  // A snapshot was committed; the job file will tell of it.
  void NoteSnapshot(int64_t step);

  // The job trains with this chief's configuration: the job file tells of it, at once if it can be
  // written now, else with a later renewal. ALREADY_EXISTS: the directory is lost.
  absl::Status NoteConfigInUse();

 private:
  DirectoryOwner* const owner_;
  StopSignal* const stop_;

  mutable Mutex mu_;
  absl::Status replaced_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_LEADERSHIP_H_
