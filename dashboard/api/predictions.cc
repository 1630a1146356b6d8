#include "dashboard/api/predictions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/scoring/probabilities.h"
#include "core/serving/example.h"
#include "core/serving/json_values.h"
#include "dashboard/api/api_request.h"
#include "dashboard/api/query_model.h"
#include "dashboard/api/script_view.h"

namespace keelson {
namespace {

constexpr char kColumns[] = "columns";
constexpr int kPredictionsAtATime = 2;
constexpr int kSearchesAtATime = 1;
constexpr size_t kDefaultItems = 10;
constexpr size_t kMostItems = 100;
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

// INVALID_ARGUMENT: `k` is no count of items.
absl::StatusOr<size_t> ItemCount(const Json& body) {
  const auto k = body.find("k");
  if (k == body.end()) return kDefaultItems;
  if (k->is_number_unsigned() && k->get<uint64_t>() >= 1 && k->get<uint64_t>() <= kMostItems) {
    return k->get<size_t>();
  }
  return WrongValue("k", absl::StrCat("1 to ", kMostItems), FoundText(&*k));
}

Json NearestJson(const NearestItems& found) {
  Json list = Json::array();
  for (const NearItem& item : found.nearest) {
    list.push_back({{"id", absl::StrCat(item.id)}, {"score", item.score}});
  }
  return {{"step", found.step},
          {"items", found.items},
          {"nearest", std::move(list)},
          {"seconds", found.seconds}};
}

HttpResponse RefuseExternal() {
  return JsonError(404, "the model is a script's: nothing is predicted here");
}

// Nothing: the model is known, and one that predicts here.
std::optional<HttpResponse> RefuseToPredict(const std::optional<RunModel>& model, bool predicts) {
  if (model.has_value() && model->external()) return RefuseExternal();
  if (!model.has_value() || !predicts) {
    return JsonError(404, "the model's configuration is not known");
  }
  return std::nullopt;
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

absl::StatusOr<Batch> Predictions::ExampleOf(const Run& run, const RunModel& model,
                                             const Json& body, InstanceReaders* readers) {
  const auto columns = body.find(kColumns);
  if (columns == body.end()) return ReadExample(model.spec.records, body);
  ASSIGN_OR_RETURN(const std::shared_ptr<const InstanceReader> reader,
                   readers->ReaderOf(run, model));
  return reader->ReadOne(kColumns, *columns);
}

HttpResponse Predictions::Predict(const HttpRequest& request, const Run& run) {
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  std::optional<RunModel> model;
  run.Read([&](const RunData& data) { model = data.model; });
  if (model.has_value() && model->external()) return PredictExternal(*body, run);
  if (auto refusal = RefuseToPredict(model, new_predictor_ != nullptr)) return *refusal;
  absl::StatusOr<Batch> example = ExampleOf(run, *model, *body, &readers_);
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

HttpResponse Predictions::PredictExternal(const Json& body, const Run& run) {
  const std::optional<ScriptForm> form = ScriptFormOf(run);
  if (!form.has_value()) return RefuseExternal();
  const Turnstile turnstile(&of_script_, 1);
  if (!turnstile.passed()) return BusyAnswer("another prediction");
  return PredictByScript(body, run, *form);
}

HttpResponse Predictions::Nearest(const HttpRequest& request, const Run& run) {
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  const absl::StatusOr<size_t> count = ItemCount(*body);
  if (!count.ok()) return ErrorAnswer(count.status());
  std::optional<RunModel> model;
  run.Read([&](const RunData& data) { model = data.model; });
  if (auto refusal = RefuseToPredict(model, new_predictor_ != nullptr)) return *refusal;
  const absl::StatusOr<QueryModel> queries = QueryModelOf(*model);
  if (!queries.ok()) return ErrorAnswer(queries.status());
  absl::StatusOr<Batch> example = ExampleOf(run, queries->model, *body, &query_readers_);
  if (!example.ok()) return ErrorAnswer(example.status());
  const Turnstile turnstile(&searches_under_way_, kSearchesAtATime);
  if (!turnstile.passed()) return BusyAnswer("another search for items");
  const absl::StatusOr<NearestItems> found = PredictorOf(run)->Nearest(
      model->config, queries->retrieval, queries->query,
      WholeExample(model->spec.records, *queries, *std::move(example)), *count);
  if (!found.ok()) return ErrorAnswer(found.status());
  Json json = NearestJson(*found);
  json["run"] = run.id();
  return JsonAnswer(json);
}

}  // namespace keelson
