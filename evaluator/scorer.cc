#include "evaluator/scorer.h"

#include <utility>

#include "core/scoring/report.h"

namespace keelson {

ScoredSnapshot MakeScoredSnapshot(EvaluationOutcome outcome, int64_t step, uint64_t snapshot_id,
                                  absl::Time time, absl::Duration took) {
  ScoredSnapshot scored;
  scored.record.step = outcome.report.step = step;
  scored.record.wall_time = outcome.report.time = time;
  scored.record.metrics = std::move(outcome.metrics);
  scored.record.snapshot_id = snapshot_id;
  scored.record.examples = outcome.report.examples;
  scored.report = FormatReport(outcome.report);
  scored.record.seconds = absl::ToDoubleSeconds(took);
  return scored;
}

}  // namespace keelson
