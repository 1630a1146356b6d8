// What an evaluator asks of whatever scores snapshots: a model of layers (SnapshotScorer), or a
// script (ScriptScorer).
#ifndef KEELSON_EVALUATOR_SCORER_H_
#define KEELSON_EVALUATOR_SCORER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/checkpoint/snapshot_info.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/scoring/evaluation_tally.h"
#include "core/tensor/variable.h"
#include "evaluator/metrics_log.h"

namespace keelson {

struct ScoredSnapshot {
  EvaluationRecord record;
  // The text of FormatReport, for WriteReport.
  std::string report;
};

// What comes of the sums over all records of the snapshot of a step; scoring it took `took`, until
// `time`.
ScoredSnapshot MakeScoredSnapshot(EvaluationOutcome outcome, int64_t step, uint64_t snapshot_id,
                                  absl::Time time, absl::Duration took);

// Not thread-safe.
class Scorer {
 public:
  // Called with each variable and its values, in the model's order, while a snapshot is read. They
  // are valid during the call.
  using VariableCallback =
      std::function<void(const VariableSpec& variable, absl::Span<const float> values)>;

  virtual ~Scorer() = default;

  // The model's.
  virtual const std::vector<VariableSpec>& variables() const = 0;
  // What computes the scores, for people: "cpu, 2 threads".
  virtual std::string computes() const = 0;
  // The records that it scores of each snapshot.
  virtual int64_t num_records() const = 0;

  // Scores the evaluation records. `lease` (may be null) is renewed while the snapshot is read. A
  // snapshot that is deleted meanwhile stays readable. `on_variable` may be null. Errors, naming
  // the file or the variable: NOT_FOUND: a file of the snapshot is missing. DATA_LOSS: it is
  // damaged. INVALID_ARGUMENT: it has not the model's variables, or the records do not fit the
  // model. CANCELLED: stopped. Otherwise those of the implementation and of file.h.
  virtual absl::StatusOr<ScoredSnapshot> Score(const SnapshotInfo& snapshot, SnapshotLease* lease,
                                               const VariableCallback& on_variable) = 0;

  // Writes what the dashboard shows of the records beside their scores. What cannot be written is
  // logged.
  virtual void WriteForDashboard(const std::string& model_dir) const {}
};

using ScorerFactory = std::function<absl::StatusOr<std::unique_ptr<Scorer>>()>;

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCORER_H_
