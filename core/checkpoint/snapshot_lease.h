// A reader's claim to a snapshot: as long as it lasts, CheckpointDirectory::Commit does not delete
// it. A small file beside the snapshot, "<prefix>.lease-<random>", with the time at which it ends
// unless it is renewed, so that a reader that crashes does not keep it for long. One line of JSON:
// {"expires":"2026-11-21T19:40:00.5+00:00","holder":"evaluator-0"}
#ifndef KEELSON_CORE_CHECKPOINT_SNAPSHOT_LEASE_H_
#define KEELSON_CORE_CHECKPOINT_SNAPSHOT_LEASE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"

namespace keelson {

// Between the snapshot's prefix and a random number in the name of a lease's file.
inline constexpr absl::string_view kLeaseInfix = ".lease-";

// Not thread-safe. The destructor releases the lease; a file that cannot be removed expires.
class SnapshotLease {
 public:
  // A lease lasts this long; readers renew it well before. Times are compared across machines,
  // whose clocks have to agree to within a fraction of it.
  static constexpr absl::Duration kDuration = absl::Minutes(2);

  // Claims the snapshot at `prefix`. `holder` is only displayed. Both pointers outlive the lease.
  // NOT_FOUND: there is no such snapshot (it may just have been deleted: take a newer one).
  // Otherwise as file_system.h. A snapshot whose deletion has begun at this moment may still
  // vanish, which the reader sees when it opens it; the latest is never one.
  static absl::StatusOr<std::unique_ptr<SnapshotLease>> Take(FileSystem* file_system,
                                                             const std::string& prefix,
                                                             std::string holder,
                                                             const Clock* clock);
  ~SnapshotLease();
  SnapshotLease(const SnapshotLease&) = delete;
  SnapshotLease& operator=(const SnapshotLease&) = delete;

  // Extends the lease to kDuration from now. Errors of Take; the lease then lasts until expires().
  absl::Status Renew();

  absl::Time expires() const { return expires_; }

 private:
  SnapshotLease(FileSystem* file_system, std::string prefix, std::string path, std::string holder,
                const Clock* clock);

  FileSystem* const file_system_;
  const std::string prefix_;
  const std::string path_;
  const std::string holder_;
  const Clock* const clock_;
  absl::Time expires_ = absl::InfinitePast();
};

// The leases in a directory, by the names of their files. One that is no lease has expired; one
// that cannot be read, or is above 64 KiB, is also logged.
struct LeaseFile {
  std::string snapshot;  // "model.ckpt-100"
  std::string holder;
  absl::Time expires = absl::InfinitePast();
};
absl::StatusOr<std::map<std::string, LeaseFile>> ListLeases(FileSystem* file_system,
                                                            const std::string& directory);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_SNAPSHOT_LEASE_H_
