// Shares the snapshots of a job among several evaluators: an evaluator claims one before it scores
// it, by a file MODEL_DIR/eval/claims/<step>.<n>. It names a time at which it ends unless it is
// renewed, so that an evaluator that crashes does not block it for long; the one that takes the
// snapshot over writes <n> + 1. One line of JSON:
// {"begun":"2026-11-21T19:39:30.5+00:00","expires":"2026-11-21T19:40:00.5+00:00",
//  "holder":"evaluator-1","id":123}
#ifndef KEELSON_EVALUATOR_SNAPSHOT_CLAIMS_H_
#define KEELSON_EVALUATOR_SNAPSHOT_CLAIMS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"

namespace keelson {

struct ClaimInfo {
  // "evaluator-1"
  std::string holder;
  // The times of the holder's clock.
  absl::Time begun;
  absl::Time expires;
  // Distinguishes processes that have been the same task.
  uint64_t id = 0;
};

// A claim that is held. The destructor releases it; a file that cannot be removed expires.
class SnapshotClaim {
 public:
  // Machines' clocks have to agree to within a fraction of it.
  static constexpr absl::Duration kDuration = absl::Seconds(30);

  ~SnapshotClaim();
  SnapshotClaim(const SnapshotClaim&) = delete;
  SnapshotClaim& operator=(const SnapshotClaim&) = delete;

 private:
  friend class SnapshotClaims;

  SnapshotClaim(std::string path, ClaimInfo info, const Clock* clock, FileSystem* file_system,
                absl::Duration renewal_interval);

  // Renews the claim until it is released.
  void KeepRenewing();
  // ABORTED: it has expired and was taken over, or removed. Otherwise as file_system.h.
  absl::Status Renew();
  bool IsMine() const;

  const std::string path_;
  const Clock* const clock_;
  FileSystem* const file_system_;
  const absl::Duration renewal_interval_;
  StopSignal returned_;
  // Used by the thread alone.
  ClaimInfo info_;
  Thread thread_;
};

// Not thread-safe. Several processes may use one directory.
class SnapshotClaims {
 public:
  // `directory` is created by the first claim. `holder` is this task, which has one process at a
  // time: claims of an earlier process are void. A claim that is held is renewed every
  // `renewal_interval`. `clock` and `file_system` outlive this and the claims.
  SnapshotClaims(std::string directory, std::string holder, const Clock* clock,
                 FileSystem* file_system = FileSystem::Real(),
                 absl::Duration renewal_interval = SnapshotClaim::kDuration / 3);

  // The claims that others hold now, by step; none if there is no directory.
  absl::StatusOr<std::map<int64_t, ClaimInfo>> HeldByOthers() const;

  // Claims a snapshot, which may have been scored between the caller's last look and this call, so
  // look again. ALREADY_EXISTS: another evaluator holds it. Otherwise as file_system.h.
  absl::StatusOr<std::unique_ptr<SnapshotClaim>> Take(int64_t step);

  // Removes claims that have expired long ago, and those of this task's earlier processes.
  absl::Status RemoveStale();

 private:
  struct ClaimFile {
    std::string name;
    int64_t generation = 0;
    ClaimInfo info;
  };

  // The newest claim of each step.
  absl::StatusOr<std::map<int64_t, ClaimFile>> Newest() const;
  bool Binds(const ClaimInfo& claim) const;

  const std::string directory_;
  const std::string holder_;
  const Clock* const clock_;
  FileSystem* const file_system_;
  const absl::Duration renewal_interval_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SNAPSHOT_CLAIMS_H_
