// What an evaluator exports; docs/metrics.md lists it.
#ifndef KEELSON_EVALUATOR_EVALUATOR_METRICS_H_
#define KEELSON_EVALUATOR_EVALUATOR_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/mutex.h"
#include "core/metrics/metric_page.h"
#include "evaluator/metrics_log.h"

namespace keelson {

// Thread-safe.
class EvaluatorMetrics {
 public:
  // Sets the evaluator's device.
  void SetDevice(const std::string& device);

  // Adds an evaluation of the job; `scored_here`: this process made it. The one of the highest step
  // is shown.
  void Add(const EvaluationRecord& record, bool scored_here);

  // Adds the families keelson_evaluator_*.
  void Collect(MetricPage* page) const;

 private:
  mutable Mutex mu_;
  std::string device_ ABSL_GUARDED_BY(mu_);
  std::optional<EvaluationRecord> newest_ ABSL_GUARDED_BY(mu_);
  // Evaluations of this process.
  int64_t evaluations_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t examples_ ABSL_GUARDED_BY(mu_) = 0;
  double seconds_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATOR_METRICS_H_
