// The job's snapshots as far as evaluations are concerned: which are the job's, and how the newest
// one that was evaluated scored.
#ifndef KEELSON_CHIEF_COORDINATION_SNAPSHOT_RECORD_H_
#define KEELSON_CHIEF_COORDINATION_SNAPSHOT_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// A pure state machine. Not thread-safe: a coordinator owns it, whose lock guards it.
class SnapshotRecord {
 public:
  using Metrics = std::map<std::string, double>;  // by name

  // So many ids of snapshots are remembered, those of the latest steps. Evaluations of earlier ones
  // are taken without a look at their ids.
  static constexpr size_t kMostNamed = 1000;

  // The job's snapshot of `step` has this id (JobState.snapshot_id).
  void Name(int64_t step, uint64_t snapshot_id);
  // The newest snapshot.
  void SetNewest(int64_t step);
  // An evaluation of the snapshot of `step` with this id. False: it does not count, because the
  // snapshot is not the job's (training went back behind it, and there is another of that step, or
  // none yet), or because a later one has been evaluated. Of those without a snapshot the latest
  // counts once its snapshot is known, as that of a predecessor is only after the start.
  bool Acknowledge(int64_t step, uint64_t snapshot_id, const Metrics& metrics);

  // The steps of a predecessor's newest snapshot and newest evaluation, unless later ones are known
  // here.
  void TakeOver(const v1::PersistedJobState& persisted);
  void ToPersisted(v1::PersistedJobState* persisted) const;

  // 0: there is no snapshot yet.
  int64_t newest_step() const { return newest_step_; }
  // -1: none was evaluated yet.
  int64_t evaluated_step() const { return evaluated_step_; }
  // Empty also for an evaluation that only a predecessor knew.
  const Metrics& evaluation() const { return evaluation_; }

 private:
  struct Early {
    int64_t step = 0;
    uint64_t snapshot_id = 0;
    Metrics metrics;
  };

  // Counts the evaluation that came before its snapshot, if that is known now.
  void TakeEarly();

  std::map<int64_t, uint64_t> ids_;  // by step
  std::optional<Early> early_;
  int64_t newest_step_ = 0;
  int64_t evaluated_step_ = -1;
  Metrics evaluation_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_SNAPSHOT_RECORD_H_
