// Writes snapshots of the whole job, and finds the one to continue from.
#ifndef KEELSON_CHIEF_SERVERS_SNAPSHOTTER_H_
#define KEELSON_CHIEF_SERVERS_SNAPSHOTTER_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/servers/delta_chain.h"
#include "chief/servers/server_cuts.h"
#include "chief/servers/server_group.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Whether a reading error (DATA_LOSS, NOT_FOUND) means that another snapshot may be readable.
bool IsDamagedSnapshot(const absl::Status& status);

// What it means that a file of a snapshot is missing which the state file names.
enum class MissingFiles {
  kError,   // it may appear: a network file system remembers for a while that it was missing
  kDamage,  // another snapshot is tried
};

// Figures on snapshots for metrics and status.json.
struct SnapshotFigures {
  // Step and time of the newest snapshot, also one of a predecessor; -1 and InfinitePast: none.
  int64_t step = -1;
  absl::Time committed = absl::InfinitePast();
  // Figures of the last snapshot that this process wrote.
  absl::Duration write_time;
  int64_t bytes = 0;
  int64_t longest_cut_microseconds = 0;
  // Counts since the start of this process.
  int64_t written = 0;
  int64_t failures = 0;
  // The error of the last try; empty: it succeeded.
  std::string error;
};

// Thread-safe, but one Write at a time.
class Snapshotter {
 public:
  // Both outlive this.
  Snapshotter(CheckpointDirectory* directory, ServerGroup* servers, RetentionPolicy retention,
              const Clock* clock, DeltaPolicy deltas = {})
      : directory_(directory),
        servers_(servers),
        retention_(retention),
        clock_(clock),
        deltas_(deltas) {}

  // Has all servers prepare their cuts, for which `take_state` is called at the right moment
  // (ServerCuts::Prepare), and writes the snapshot of that state's global_step: the servers'
  // parts side by side, then the chief's own part (global_step, job state) and the index, all under
  // names that carry the chief's term and the cut; then it gives them their final names, and writes
  // last the state file.
  // `confirm` is called before the final names are given, and says whether this chief may commit;
  // its error becomes the snapshot's. ABORTED: somebody else has committed meanwhile. UNAVAILABLE:
  // storage does not find a part that was written, or a server is away; another try may succeed. If
  // the latest snapshot has that step already, nothing is written; where no snapshot is known here,
  // and the state file names one of that step, it is UNAVAILABLE, too, and FindNewest may know it.
  // A missing model directory is created again. On an error those files of this attempt are removed
  // that have no final name yet, and the latest snapshot is what it was. The snapshot of
  // `kept_step` (kNoStep: none) stays beside those that the retention keeps. By the policy of
  // deltas, it is one on the newest snapshot that this object has committed; whole where a server
  // does not know what has changed since, where that is more than half of the rows, and when the
  // deltas have become half as large as the whole snapshot below them.
  absl::Status Write(
      absl::FunctionRef<v1::JobState()> take_state,
      absl::FunctionRef<absl::Status()> confirm = [] { return absl::OkStatus(); },
      int64_t kept_step = kNoStep);

  struct Restored {
    std::string prefix;  // empty: no snapshot
    int64_t step = 0;    // of the snapshot
    v1::JobState state;
  };

  // The newest snapshot whose job state can be read, which becomes the latest; nothing: none can.
  // Not during Write.
  absl::StatusOr<std::optional<Restored>> FindNewest();

  // Tries the snapshots of the directory, newest first: reads the job state and lets `restore` use
  // the prefix. A damaged one (DATA_LOSS, NOT_FOUND) is logged and the one before is tried. Returns
  // an empty prefix when there are none. DATA_LOSS: there are, but none is usable, or no state file
  // names them. NOT_FOUND: with MissingFiles::kError, something is missing.
  absl::StatusOr<Restored> RestoreLatest(absl::FunctionRef<absl::Status(const Restored&)> restore,
                                         MissingFiles missing = MissingFiles::kDamage);

  // The snapshots, newest first, to restore a server from. Empty: none is in sight, and this object
  // knows of none.
  absl::StatusOr<std::vector<SnapshotInfo>> Snapshots() const;

  // Counts a snapshot that failed before Write.
  void NoteFailure(const absl::Status& status);

  // Prefix of the newest snapshot; empty: none.
  std::string latest_prefix() const;
  SnapshotFigures figures() const;

 private:
  // A snapshot that is being written.
  struct Attempt {
    std::string prefix;
    size_t num_data_shards = 0;
    uint64_t term = 0;
    ServerCuts::Cut cut;
    std::optional<v1::SnapshotBase> base = std::nullopt;  // of a delta

    std::string Pending(const std::string& path) const { return PendingPath(path, term, cut.id); }
  };
  absl::StatusOr<std::vector<BundleIndexEntry>> WriteChiefPart(const Attempt& attempt,
                                                               v1::JobState state);
  // FAILED_PRECONDITION: a server has another model directory.
  absl::Status CheckParts(const Attempt& attempt) const;
  absl::Status WriteCut(const ServerCuts::Cut& cut, const v1::JobState& state,
                        absl::FunctionRef<absl::Status()> confirm, int64_t kept_step);
  absl::Status WriteParts(const Attempt& attempt, const v1::JobState& state,
                          absl::FunctionRef<absl::Status()> confirm, int64_t kept_step);
  // Writes what the parts of the servers, with these entries, lack of a snapshot, and commits it.
  // NOT_FOUND: storage does not find what was written.
  absl::Status Complete(const Attempt& attempt, const v1::JobState& state,
                        std::vector<BundleIndexEntry> entries,
                        absl::FunctionRef<absl::Status()> confirm, int64_t kept_step);
  // UNAVAILABLE: a predecessor has committed a snapshot of that step, which was out of sight when
  // this object looked for the newest one.
  absl::Status CheckNotCommitted(const Attempt& attempt) const;
  // Gives the attempt's files their final names.
  absl::Status Publish(const Attempt& attempt);
  absl::Status EnsureDirectory();
  void RemovePending(const Attempt& attempt);
  // The snapshots to start from, newest first.
  absl::StatusOr<std::vector<SnapshotInfo>> Candidates(MissingFiles missing) const;
  // OK: no file of a snapshot of a later step than 0 is in sight.
  absl::Status CheckNoneUnnamed(MissingFiles missing) const;
  void SetLatest(const SnapshotInfo& snapshot);

  CheckpointDirectory* const directory_;
  ServerGroup* const servers_;
  const RetentionPolicy retention_;
  const Clock* const clock_;

  DeltaChain deltas_;  // used by Write alone
  // Prefixes of snapshots that FindNewest could not read.
  std::set<std::string> damaged_;

  mutable Mutex mu_;
  std::optional<SnapshotInfo> latest_ ABSL_GUARDED_BY(mu_);
  SnapshotFigures figures_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SNAPSHOTTER_H_
