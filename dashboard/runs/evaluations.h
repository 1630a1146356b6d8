// The evaluations of a run, from eval/metrics.jsonl.
#ifndef KEELSON_DASHBOARD_RUNS_EVALUATIONS_H_
#define KEELSON_DASHBOARD_RUNS_EVALUATIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/scoring/direction.h"
#include "dashboard/runs/changed_file.h"

namespace keelson {

struct Evaluation {
  int64_t step = 0;
  double time = 0;     // when it was done, seconds since the epoch
  double seconds = 0;  // how long it took
  int64_t examples = 0;
  std::map<std::string, double> metrics;  // may be not finite
};

// A line of the file: FormatEvaluationRecord (evaluator/metrics_log.h). nullopt: it is none.
std::optional<Evaluation> ParseEvaluation(absl::string_view line);

// What there is of a metric in a run's evaluations.
struct MetricFigure {
  int64_t last_step = 0;
  double last = 0;                // may be not finite
  std::optional<BestValue> best;  // as TakeIfBest (core/scoring/direction.h)
};
using MetricFigures = std::map<std::string, MetricFigure>;  // by the metric's name

// Adds those of an evaluation, whose step is beyond all that were added.
void TakeMetrics(const Evaluation& evaluation, MetricFigures* figures);

// The metric that says how good the model is: the first of `preferred` that the newest evaluation
// has; else the first that is not the loss, in order of their names; the loss where there is no
// other; empty where there is none.
std::string PrimaryMetric(const std::map<int64_t, Evaluation>& evaluations,
                          const std::vector<std::string>& preferred);

// Follows the file. Not thread-safe. A last line that is not complete is waited for; lines that are
// no evaluations are left out.
class EvaluationTail {
 public:
  EvaluationTail(FileSystem* file_system, std::string path) : tail_(file_system, std::move(path)) {}

  // Adds what is new, about `max_bytes` of it. True: there is more. A file that was replaced may be
  // told again.
  bool Poll(size_t max_bytes, std::vector<Evaluation>* evaluations);

  // DATA_LOSS: lines that make no sense; or as file_system.h. A file that is not there is fine.
  const absl::Status& trouble() const { return trouble_; }

 private:
  // False: a line makes no sense, which may come of a file that was replaced: all is to be read
  // again.
  bool TakeLines(std::vector<Evaluation>* evaluations);

  FileTail tail_;
  int64_t lines_ = 0;
  int64_t bad_lines_ = 0;
  // All is being read again.
  bool restarted_ = false;
  absl::Status trouble_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_EVALUATIONS_H_
