// The right to write to a model directory, which one process has at a time (ADR 0023).
#ifndef KEELSON_CORE_CHECKPOINT_DIRECTORY_OWNER_H_
#define KEELSON_CORE_CHECKPOINT_DIRECTORY_OWNER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/checkpoint/job_file.h"
#include "keelson/v1/job_file.pb.h"

namespace keelson {

// Holds the lock of MODEL_DIR/JOB.lock, and renews MODEL_DIR/JOB on a thread of its own, four times
// in a lease. Storage that fails is tried again for as long as it takes: an owner ends only when it
// reads that another one has the directory. One that finds a directory which nobody holds any more,
// but which cannot be written at present, is its heir: it has no right to write, and takes the
// directory with the first renewal that succeeds. Thread-safe.
class DirectoryOwner {
 public:
  struct Options {
    std::string model_dir;
    // Owner, job, task, host, pid, boot_id, lease_seconds and the configuration, which the file
    // has once it is in use; Take sets the rest.
    v1::JobFile self;
    // Whether this process may go on with what its predecessor trained; what is not OK is returned
    // by Take, and the directory stays as it is. May be null: yes.
    std::function<absl::Status(const v1::JobFile& predecessor)> may_follow;
    // Real time between two looks at a predecessor's lease, and at the own file; absent: a tenth
    // and a fourth of the lease.
    std::optional<absl::Duration> look_pause;
    std::optional<absl::Duration> renew_pause;
  };

  // Makes the directory if it is absent, and takes it: at once when nobody has it, when its owner
  // has released it, or when the lock, which the kernel frees with the owner's process, proves that
  // it has ended on this machine; otherwise when its file has stood still for its lease. File
  // system, clock and `stop` outlive the owner; `stop` is raised when the directory is lost.
  //
  // ALREADY_EXISTS: another process has it; who, and since when. CANCELLED: `stop` was raised.
  // Errors of ReadJobFile, of `may_follow`, of file_system.h (UNAVAILABLE after a lease of tries);
  // of writing only where no predecessor has left a job file.
  static absl::StatusOr<std::unique_ptr<DirectoryOwner>> Take(Options options,
                                                              FileSystem* file_system,
                                                              const Clock* clock, StopSignal* stop);
  // Releases the directory: nothing that this process writes may come later.
  ~DirectoryOwner();
  DirectoryOwner(const DirectoryOwner&) = delete;
  DirectoryOwner& operator=(const DirectoryOwner&) = delete;

  // The term of this chief, above that of its predecessor; an heir's is in no file yet.
  uint64_t term() const;
  // This is an heir that has not had the directory yet.
  bool heir() const;

  // The step of the newest snapshot that any owner has committed here, as far as is known; 0: none.
  int64_t snapshot_step() const;
  // Remembers a snapshot that was committed; the next renewal writes it.
  void NoteSnapshot(int64_t step);
  // The model is trained with the configuration of Options::self from now on; the next renewal
  // writes it. Until then the file tells of the predecessor's.
  void NoteConfigInUse();
  // Has the file carry a term above `known`, for a file that was lost while servers know its terms.
  // An heir's will be in its file once the directory can be written. Returns the new term.
  // ALREADY_EXISTS: the directory is lost. Otherwise errors of file_system.h.
  absl::StatusOr<uint64_t> RaiseTerm(uint64_t known);

  // Renews now: OK means that no other process had the directory before this call.
  // ALREADY_EXISTS: it is lost. Otherwise errors of file_system.h: nobody knows.
  absl::Status Confirm();
  // The lease lasts and nobody else has been seen. Does not look at the storage.
  bool in_force() const;
  // OK, or ALREADY_EXISTS: who has the directory.
  absl::Status lost() const;

 private:
  DirectoryOwner(Options options, std::unique_ptr<FileLock> lock, FileSystem* file_system,
                 const Clock* clock, StopSignal* stop);

  absl::Duration lease() const { return absl::Seconds(options_.self.lease_seconds()); }
  // A predecessor's file that is watched.
  struct Watch {
    std::string version;  // empty: none
    absl::Duration since;
  };
  absl::Status Acquire();
  // Whether the directory may be taken. ALREADY_EXISTS: its owner lives.
  absl::StatusOr<bool> IsFree(const std::optional<StoredJobFile>& found, Watch* watch) const;
  // Nobody who wrote `job` can still write.
  bool HasEnded(const v1::JobFile& job) const;
  absl::Status TakeOver(const std::optional<StoredJobFile>& predecessor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(renewal_mu_);
  // The same for an heir: after an error of Write, OK when it may take the directory as it is.
  absl::Status LookAtPredecessor(const StoredJobFile& found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(renewal_mu_);
  // Sets what others have noted.
  void SetNoted(v1::JobFile* next) const;
  absl::Status Write(v1::JobFile next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(renewal_mu_);
  absl::Status Renew(uint64_t least_term = 0);
  // Has job_ carry the term, which an heir uses before it is written.
  void UseTerm(uint64_t term) ABSL_EXCLUSIVE_LOCKS_REQUIRED(renewal_mu_);
  // After an error of Write: OK when the file may be written again.
  absl::Status LookAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(renewal_mu_);
  absl::Status NoteLost(absl::string_view to);
  void KeepRenewing();
  void Release();

  const Options options_;
  const std::unique_ptr<FileLock> lock_;  // null: the file system has none
  FileSystem* const file_system_;
  const Clock* const clock_;
  StopSignal* const stop_;

  // Held while the file is written; taken before mu_.
  Mutex renewal_mu_;
  v1::JobFile job_ ABSL_GUARDED_BY(renewal_mu_);
  std::string version_ ABSL_GUARDED_BY(renewal_mu_);
  // An heir's: whose directory it waits to take, and how it looks.
  std::optional<uint64_t> predecessor_ ABSL_GUARDED_BY(renewal_mu_);
  Watch watch_ ABSL_GUARDED_BY(renewal_mu_);

  mutable Mutex mu_;
  absl::Duration renewed_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  uint64_t term_ ABSL_GUARDED_BY(mu_) = 0;
  bool heir_ ABSL_GUARDED_BY(mu_) = false;
  int64_t snapshot_step_ ABSL_GUARDED_BY(mu_) = 0;
  bool config_in_use_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status lost_ ABSL_GUARDED_BY(mu_);

  StopSignal end_;
  Thread renewal_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_DIRECTORY_OWNER_H_
