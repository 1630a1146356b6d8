// Finds out whether the job is over.
#ifndef KEELSON_EVALUATOR_ENDING_WATCH_H_
#define KEELSON_EVALUATOR_ENDING_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "evaluator/chief_link.h"
#include "evaluator/patience.h"

namespace keelson {

// The known facts about the end of the job.
struct Ending {
  bool done = false;
  // The chief has said that the job is done, and no longer waits for this member.
  bool dismissed = false;
  std::optional<int64_t> final_step;  // known when done
  // The hash in a DONE marker of another configuration; read while no chief answers.
  std::optional<uint64_t> foreign_hash;
};

// Not thread-safe.
class EndingWatch {
 public:
  // Both outlive this. `patience`: how long nothing may change in the directory of a finished job
  // of another configuration.
  EndingWatch(const CheckpointDirectory* directory, uint64_t config_hash, absl::Duration patience,
              const Clock* clock)
      : directory_(directory), config_hash_(config_hash), unchanged_(patience, clock) {}

  // What the chief says, or, if it is away or `link` null, the DONE marker. JobView::error, or an
  // error of CheckpointDirectory::ReadDoneMarker.
  absl::StatusOr<Ending> Look(const ChiefLink* link);

  // FAILED_PRECONDITION once the marker is of another configuration and these snapshots, and the
  // number of evaluations, have not changed for too long.
  absl::Status CheckForeignMarker(const Ending& ending, const std::vector<SnapshotInfo>& snapshots,
                                  size_t records);

 private:
  // The state that changes while the job goes on.
  struct Progress {
    uint64_t foreign_hash = 0;
    std::vector<int64_t> snapshots;
    size_t records = 0;

    bool operator==(const Progress&) const = default;
  };

  const CheckpointDirectory* const directory_;
  const uint64_t config_hash_;
  Progress last_progress_;
  Patience unchanged_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_ENDING_WATCH_H_
