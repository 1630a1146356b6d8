#include "evaluator/early_stopping.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/scoring/direction.h"

namespace keelson {
namespace {

std::string Reason(const v1::EvaluationConfig::EarlyStopping& config, const EarlyStop& stop) {
  std::string best = "any number";
  if (stop.best_step.has_value()) {
    best = absl::StrCat(stop.best_value, " (step ", *stop.best_step, ")");
  }
  return absl::StrCat("early stopping: ", config.metric(), " has not become better than ", best,
                      " in ", config.patience(), " evaluations");
}

}  // namespace

std::optional<EarlyStop> JudgeEarlyStopping(const v1::EvaluationConfig::EarlyStopping& config,
                                            const std::map<int64_t, EvaluationRecord>& records,
                                            int64_t end_step) {
  EarlyStop stop;
  int64_t in_vain = 0;
  for (const auto& [step, record] : records) {
    if (step >= end_step) break;
    const auto metric = record.metrics.find(config.metric());
    if (metric == record.metrics.end()) continue;
    const double gain = Gain(config.metric(), metric->second, stop.best_value);
    const bool better =
        std::isfinite(metric->second) && (!stop.best_step.has_value() || gain > config.min_delta());
    if (better) {
      stop.best_step = step;
      stop.best_value = metric->second;
      in_vain = 0;
      continue;
    }
    ++in_vain;
    if (in_vain < config.patience() || step < config.min_steps()) continue;
    stop.step = step;
    stop.reason = Reason(config, stop);
    return stop;
  }
  return std::nullopt;
}

}  // namespace keelson
