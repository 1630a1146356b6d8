#include "evaluator/script_predictions.h"

#include <utility>

namespace keelson {

void ScriptPredictions::Attach(ScriptForm form, PredictCall predict) {
  {
    MutexLock lock(&call_mu_);
    predict_ = std::move(predict);
  }
  MutexLock lock(&mu_);
  form_ = std::move(form);
}

void ScriptPredictions::Detach() {
  {
    MutexLock lock(&mu_);
    form_ = std::nullopt;
  }
  MutexLock lock(&call_mu_);
  predict_ = nullptr;
}

std::optional<ScriptForm> ScriptPredictions::form() const {
  MutexLock lock(&mu_);
  return form_;
}

absl::StatusOr<ScriptPrediction> ScriptPredictions::Predict(const ScriptInput& input) {
  MutexLock lock(&call_mu_);
  if (predict_ == nullptr) return absl::NotFoundError("the script that predicts has ended");
  return predict_(input);
}

}  // namespace keelson
