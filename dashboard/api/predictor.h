// Predictions of a run's newest model, for single examples.
#ifndef KEELSON_DASHBOARD_API_PREDICTOR_H_
#define KEELSON_DASHBOARD_API_PREDICTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/batch.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct Prediction {
  int64_t step = 0;  // of the snapshot
  // Classification: the classes' probabilities. Binary: that of label 1, alone. Regression: the
  // values.
  std::vector<float> outputs;
  double seconds = 0;  // of the forward pass
};

// Thread-safe.
class Predictor {
 public:
  virtual ~Predictor() = default;

  // Of a batch of one record; its labels are ignored, and its rows are looked up. `config` is
  // final. NOT_FOUND: there is no snapshot of this model that can be read. INVALID_ARGUMENT: a
  // batch that does not fit the model, or a model that makes no sense.
  virtual absl::StatusOr<Prediction> Predict(const v1::TrainConfig& config, Batch example) = 0;
};

// Makes the predictor of a model directory; cheap, for the model is loaded when it is asked.
using PredictorFactory = std::function<std::unique_ptr<Predictor>(const std::string& model_dir)>;

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_PREDICTOR_H_
