// POST /api/v1/runs/{run}/predict and nearest: predictions of a run's newest model, and the items
// that are nearest to a query.
#ifndef KEELSON_DASHBOARD_API_PREDICTIONS_H_
#define KEELSON_DASHBOARD_API_PREDICTIONS_H_

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/http/message.h"
#include "core/model/spec/batch.h"
#include "dashboard/api/instance_readers.h"
#include "dashboard/api/predictor.h"
#include "dashboard/runs/json.h"
#include "dashboard/runs/run.h"

namespace keelson {

// Thread-safe.
class Predictions {
 public:
  // `new_predictor` may be null: nothing is predicted.
  explicit Predictions(PredictorFactory new_predictor) : new_predictor_(std::move(new_predictor)) {}

  HttpResponse Predict(const HttpRequest& request, const Run& run);
  HttpResponse Nearest(const HttpRequest& request, const Run& run);

 private:
  // By the script whose model it is.
  HttpResponse PredictExternal(const Json& body, const Run& run);
  struct LoadedPredictor {
    std::string run;
    std::shared_ptr<Predictor> predictor;
  };

  std::shared_ptr<Predictor> PredictorOf(const Run& run);
  // The record of a request.
  static absl::StatusOr<Batch> ExampleOf(const Run& run, const RunModel& model, const Json& body,
                                         InstanceReaders* readers);

  const PredictorFactory new_predictor_;
  // Predictions may take long, and the threads are few.
  std::atomic<int> under_way_{0};
  std::atomic<int> searches_under_way_{0};
  std::atomic<int> of_script_{0};
  InstanceReaders readers_;
  InstanceReaders query_readers_;

  Mutex mu_;
  // The newest first.
  std::list<LoadedPredictor> predictors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_PREDICTIONS_H_
