#include "dashboard/api/predictions.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/scoring/probabilities.h"
#include "core/serving/example.h"
#include "dashboard/api/api_request.h"

namespace keelson {
namespace {

constexpr int kPredictionsAtATime = 2;
// Each predictor holds a model in memory.
constexpr size_t kKeptPredictors = 4;

Json PredictionJson(const RunModel& model, const Prediction& prediction) {
  Json json = {{"step", prediction.step}, {"kind", model.kind()}, {"seconds", prediction.seconds}};
  std::vector<float> outputs = prediction.outputs;
  const LossKind loss = model.spec.main_loss().kind;
  if (IsRegression(loss) || loss == LossKind::kInBatchSoftmax) {
    json["prediction"] = outputs.front();
    return json;
  }
  if (loss == LossKind::kSigmoidCrossEntropy) {
    outputs = {1 - prediction.outputs.front(), prediction.outputs.front()};
  }
  json["probabilities"] = outputs;
  const int64_t predicted = PredictedClass(outputs);
  if (predicted < 0) {
    json["predicted"] = nullptr;
    return json;
  }
  json["predicted"] = predicted;
  if (predicted < static_cast<int64_t>(model.classes.size())) {
    json["class"] = model.classes[predicted];
  }
  return json;
}

}  // namespace

std::shared_ptr<Predictor> Predictions::PredictorOf(const Run& run) {
  MutexLock lock(&mu_);
  const auto found =
      std::find_if(predictors_.begin(), predictors_.end(),
                   [&](const LoadedPredictor& loaded) { return loaded.run == run.id(); });
  if (found != predictors_.end()) {
    predictors_.splice(predictors_.begin(), predictors_, found);
  } else {
    predictors_.push_front({run.id(), new_predictor_(run.model_dir())});
    if (predictors_.size() > kKeptPredictors) predictors_.pop_back();
  }
  return predictors_.front().predictor;
}

HttpResponse Predictions::Predict(const HttpRequest& request, const Run& run) {
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  std::optional<RunModel> model;
  run.Read([&](const RunData& data) { model = data.model; });
  if (!model.has_value() || new_predictor_ == nullptr) {
    return JsonError(404, "the model's configuration is not known");
  }
  absl::StatusOr<Batch> example = ReadExample(model->spec.records, *body);
  if (!example.ok()) return ErrorAnswer(example.status());
  const Turnstile turnstile(&under_way_, kPredictionsAtATime);
  if (!turnstile.passed()) return BusyAnswer("another prediction");
  const absl::StatusOr<Prediction> prediction =
      PredictorOf(run)->Predict(model->config, *std::move(example));
  if (!prediction.ok()) return ErrorAnswer(prediction.status());
  Json json = PredictionJson(*model, *prediction);
  json["run"] = run.id();
  return JsonAnswer(json);
}

}  // namespace keelson
