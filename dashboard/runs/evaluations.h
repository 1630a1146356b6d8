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

// Parses a line of the file, as FormatEvaluationRecord (evaluator/metrics_log.h) writes it.
// nullopt: it is not such a line.
std::optional<Evaluation> ParseEvaluation(absl::string_view line);

// Figures of a metric over a run's evaluations.
struct MetricFigure {
  int64_t last_step = 0;
  double last = 0;                // may be not finite
  std::optional<BestValue> best;  // as TakeIfBest (core/scoring/direction.h)
};
using MetricFigures = std::map<std::string, MetricFigure>;  // by the metric's name

// Adds the metrics of an evaluation whose step is beyond all that were added.
void TakeMetrics(const Evaluation& evaluation, MetricFigures* figures);

// The metric by which the model is judged: the first of `preferred` that the newest evaluation has;
// else the first that is not the loss, in order of their names; the loss where there is no other;
// empty where there is none.
std::string PrimaryMetric(const std::map<int64_t, Evaluation>& evaluations,
                          const std::vector<std::string>& preferred);

// Follows the file. Not thread-safe. An incomplete last line is read later; lines that are no
// evaluations are skipped.
class EvaluationTail {
 public:
  EvaluationTail(FileSystem* file_system, std::string path) : tail_(file_system, std::move(path)) {}

  // Adds new evaluations, from about `max_bytes`. True: there is more. Evaluations of a file that
  // was replaced may be added again.
  bool Poll(size_t max_bytes, std::vector<Evaluation>* evaluations);

  // DATA_LOSS: malformed lines; or as file_system.h. A missing file is OK.
  const absl::Status& trouble() const { return trouble_; }

 private:
  // False: a line is malformed, perhaps because the file was replaced: the file must be read again.
  bool TakeLines(std::vector<Evaluation>* evaluations);

  FileTail tail_;
  int64_t lines_ = 0;
  int64_t bad_lines_ = 0;
  // The file is being read again.
  bool restarted_ = false;
  absl::Status trouble_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_EVALUATIONS_H_
