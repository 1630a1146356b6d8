// Predictions of a job's model over HTTP, in the form of TensorFlow Serving's REST API
// (https://www.tensorflow.org/tfx/serving/api_rest).
#ifndef KEELSON_CORE_SERVING_PREDICTION_SERVER_H_
#define KEELSON_CORE_SERVING_PREDICTION_SERVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/http/message.h"
#include "core/http/server.h"
#include "core/serving/instances.h"
#include "core/serving/served_model.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct ServingFlags {
  std::optional<int> port;  // nothing: not wanted; 0: any free one
  std::string address;      // empty: all of the host's
  std::vector<std::string> hosts;
};

// POST /v1/models/NAME:predict
//   {"instances": [...]} -> {"predictions": [...], "model_version": "STEP"}
//   {"inputs": {...}}    -> {"outputs": [...], "model_version": "STEP"}
// as InstanceReader has it; a prediction is the list of the model's outputs: the probabilities of
// cross-entropies (of binary labels that of label 1), otherwise the scores of the main loss.
// GET /v1/models/NAME: the version, which is the snapshot's step, and its state.
// NAME is model.name, or "model" where that is empty. Errors are {"error": "..."}: 400 for a
// request that is none, 404 for another model or path, 503 while there is no snapshot. Thread-safe.
class PredictionServer {
 public:
  // Serves until it is destroyed. Looks for a new snapshot once a second. `config` is final, with a
  // model directory; `file_system` and `clock` outlive this. Errors of InferModelSpec,
  // InstanceReader, ServedModel and HttpServer::Start, whose flags are --serve, --serve_address and
  // --serve_hosts.
  static absl::StatusOr<std::unique_ptr<PredictionServer>> Start(const v1::TrainConfig& config,
                                                                 const ServingFlags& flags,
                                                                 FileSystem* file_system,
                                                                 Clock* clock);
  ~PredictionServer();

  int port() const { return http_->port(); }
  HttpResponse Answer(const HttpRequest& request);

 private:
  PredictionServer(std::string name, int64_t outputs, std::unique_ptr<const InstanceReader> reader,
                   std::unique_ptr<ServedModel> model);

  HttpResponse Predict(const std::string& body);
  HttpResponse Version() const;
  // Takes new snapshots until it is stopped.
  void Follow();

  const std::string path_;  // "/v1/models/NAME"
  const int64_t outputs_;   // of a prediction
  const std::unique_ptr<const InstanceReader> reader_;
  const std::unique_ptr<ServedModel> model_;
  StopSignal stop_;
  Thread follower_;
  std::unique_ptr<HttpServer> http_;  // last: it calls Answer
};

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_PREDICTION_SERVER_H_
