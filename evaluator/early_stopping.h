// Decides from evaluations when training ends before its last step
// (EvaluationConfig.EarlyStopping).
#ifndef KEELSON_EVALUATOR_EARLY_STOPPING_H_
#define KEELSON_EVALUATOR_EARLY_STOPPING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "evaluator/metrics_log.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct EarlyStop {
  // The step of the evaluation that exhausted the patience.
  int64_t step = 0;
  // The step of the best evaluation until then; nothing: no value was finite.
  std::optional<int64_t> best_step;
  double best_value = 0;
  // "early stopping: loss has not become better than 0.07 (step 1000) in 5 evaluations"
  std::string reason;
};

// Judges all evaluations of the job in the order of their steps, including those of earlier
// processes of the evaluator, so the result depends on nothing else and never changes later. A
// value that is not finite is no better than any; an evaluation without the metric does not count.
// `records` are by step; only those before `end_step` count. Returns nothing while training goes
// on.
std::optional<EarlyStop> JudgeEarlyStopping(const v1::EvaluationConfig::EarlyStopping& config,
                                            const std::map<int64_t, EvaluationRecord>& records,
                                            int64_t end_step);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EARLY_STOPPING_H_
