// POST /api/v1/runs/{run}/predict: predictions of a run's newest model.
#ifndef KEELSON_DASHBOARD_API_PREDICTIONS_H_
#define KEELSON_DASHBOARD_API_PREDICTIONS_H_

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/http/message.h"
#include "dashboard/api/predictor.h"
#include "dashboard/runs/run.h"

namespace keelson {

// Thread-safe.
class Predictions {
 public:
  // `new_predictor` may be null: nothing is predicted.
  explicit Predictions(PredictorFactory new_predictor) : new_predictor_(std::move(new_predictor)) {}

  HttpResponse Predict(const HttpRequest& request, const Run& run);

 private:
  struct LoadedPredictor {
    std::string run;
    std::shared_ptr<Predictor> predictor;
  };

  std::shared_ptr<Predictor> PredictorOf(const Run& run);

  const PredictorFactory new_predictor_;
  // Predictions may take long, and the threads are few.
  std::atomic<int> under_way_{0};

  Mutex mu_;
  // The newest first.
  std::list<LoadedPredictor> predictors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_PREDICTIONS_H_
