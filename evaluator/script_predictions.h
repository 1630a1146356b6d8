// Lends the script that evaluates to the dashboard, for predictions.
#ifndef KEELSON_EVALUATOR_SCRIPT_PREDICTIONS_H_
#define KEELSON_EVALUATOR_SCRIPT_PREDICTIONS_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "dashboard/runs/script_model.h"

namespace keelson {

// The dashboard is there before the script, and may be after it. Thread-safe.
class ScriptPredictions : public ScriptModel {
 public:
  using PredictCall = std::function<absl::StatusOr<ScriptPrediction>(const ScriptInput&)>;

  // From now on a script predicts; `predict` is called by one thread at a time.
  void Attach(ScriptForm form, PredictCall predict);
  // It does so no more. Waits for a prediction that is under way.
  void Detach();

  std::optional<ScriptForm> form() const override;
  absl::StatusOr<ScriptPrediction> Predict(const ScriptInput& input) override;

 private:
  mutable Mutex mu_;
  std::optional<ScriptForm> form_ ABSL_GUARDED_BY(mu_);
  Mutex call_mu_;  // held during a prediction
  PredictCall predict_ ABSL_GUARDED_BY(call_mu_);
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_PREDICTIONS_H_
