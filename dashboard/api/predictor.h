// Predictions of a run's newest model, for single examples.
#ifndef KEELSON_DASHBOARD_API_PREDICTOR_H_
#define KEELSON_DASHBOARD_API_PREDICTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

  // One example, rows first. NOT_FOUND: there is no snapshot of this model that can be read.
  // INVALID_ARGUMENT: not the number of values that the model takes, one that is not finite, or a
  // model that makes no sense.
  virtual absl::StatusOr<Prediction> Predict(const v1::ModelConfig& model,
                                             absl::Span<const float> features) = 0;
};

// Makes the predictor of a model directory; cheap, for the model is loaded when it is asked.
using PredictorFactory = std::function<std::unique_ptr<Predictor>(const std::string& model_dir)>;

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_PREDICTOR_H_
