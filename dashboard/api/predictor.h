// Predictions of a run's newest model, for single examples.
#ifndef KEELSON_DASHBOARD_API_PREDICTOR_H_
#define KEELSON_DASHBOARD_API_PREDICTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct Prediction {
  int64_t step = 0;  // of the snapshot
  // Classification: the classes' probabilities. Binary: that of label 1, alone. Regression: the
  // values.
  std::vector<float> outputs;
  double seconds = 0;  // of the forward pass
};

struct NearItem {
  uint64_t id = 0;
  float score = 0;  // the product of its vector and the query's
};

struct NearestItems {
  int64_t step = 0;   // of the snapshot
  int64_t items = 0;  // how many there are
  std::vector<NearItem> nearest;
  double seconds = 0;
};

// Thread-safe.
class Predictor {
 public:
  virtual ~Predictor() = default;

  // Of a batch of one record; its labels are ignored, and its rows are looked up. `config` is
  // final. NOT_FOUND: there is no snapshot of this model that can be read. INVALID_ARGUMENT: a
  // batch that does not fit the model, or a model that makes no sense.
  virtual absl::StatusOr<Prediction> Predict(const v1::TrainConfig& config, Batch example) = 0;

  // The `count` items that are nearest to the query of a batch of one record, whose items say
  // nothing, but for those that the record has in retrieval.exclude_features. The greatest score
  // comes first. Errors as Predict's. NOT_FOUND: the items are not known. INVALID_ARGUMENT: an id
  // of a feature in `query`, of those by position, has no row in its table.
  virtual absl::StatusOr<NearestItems> Nearest(const v1::TrainConfig& config,
                                               const RetrievalSpec& retrieval,
                                               const std::vector<bool>& query, Batch example,
                                               size_t count) = 0;
};

// Makes the predictor of a model directory; cheap, for the model is loaded when it is asked.
using PredictorFactory = std::function<std::unique_ptr<Predictor>(const std::string& model_dir)>;

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_PREDICTOR_H_
