// The API's handlers of POST requests: predictions and changes of the job.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/auth_token.h"
#include "core/base/log.h"
#include "core/scoring/probabilities.h"
#include "dashboard/api/api.h"
#include "dashboard/api/api_request.h"

namespace keelson {
namespace {

constexpr int kPredictionsAtATime = 2;
// Each predictor holds a model in memory.
constexpr size_t kKeptPredictors = 4;
// The rate of warnings about the tokens of one client.
constexpr double kWarningsPerSecond = 1.0 / 60;
constexpr size_t kMaxReasonBytes = 200;
constexpr size_t kMaxModeBytes = 40;

absl::StatusOr<std::vector<float>> FeaturesOf(const Json& body) {
  const Json* const list = ListAt(body, "features");
  if (list == nullptr) {
    return absl::InvalidArgumentError("features: expected a list of numbers");
  }
  std::vector<float> features;
  features.reserve(list->size());
  for (const Json& value : *list) {
    if (!value.is_number()) {
      return absl::InvalidArgumentError(
          absl::StrCat("features[", features.size(), "]: expected a number"));
    }
    features.push_back(value.get<float>());
  }
  return features;
}

Json PredictionJson(const RunModel& model, const Prediction& prediction) {
  Json json = {{"step", prediction.step}, {"kind", model.kind()}, {"seconds", prediction.seconds}};
  std::vector<float> outputs = prediction.outputs;
  if (model.spec.loss == LossKind::kMeanSquaredError) {
    json["prediction"] = outputs.front();
    return json;
  }
  if (model.spec.loss == LossKind::kSigmoidCrossEntropy) {
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
    json["class"] = model.classes[static_cast<size_t>(predicted)];
  }
  return json;
}

// The reason is written to logs and displayed, so it must be a single line.
bool IsLine(absl::string_view text, size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

HttpResponse Taken(const absl::Status& status) {
  if (!status.ok()) return ErrorAnswer(status);
  HttpResponse response = JsonAnswer(Json({{"taken", true}}));
  response.status = 202;
  return response;
}

}  // namespace

DashboardApi::DashboardApi(Options options)
    : options_(std::move(options)), warnings_(kWarningsPerSecond, /*burst=*/1, options_.clock) {}

std::shared_ptr<Predictor> DashboardApi::PredictorOf(const Run& run) {
  MutexLock lock(&mu_);
  const auto found =
      std::find_if(predictors_.begin(), predictors_.end(),
                   [&](const LoadedPredictor& loaded) { return loaded.run == run.id(); });
  if (found != predictors_.end()) {
    predictors_.splice(predictors_.begin(), predictors_, found);
  } else {
    predictors_.push_front({run.id(), options_.new_predictor(run.model_dir())});
    if (predictors_.size() > kKeptPredictors) predictors_.pop_back();
  }
  return predictors_.front().predictor;
}

HttpResponse DashboardApi::Predict(const HttpRequest& request, const Run& run) {
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  const absl::StatusOr<std::vector<float>> features = FeaturesOf(*body);
  if (!features.ok()) return ErrorAnswer(features.status());
  std::optional<RunModel> model;
  run.Read([&](const RunData& data) { model = data.model; });
  if (!model.has_value() || options_.new_predictor == nullptr) {
    return JsonError(404, "the model's configuration is not known");
  }
  const Turnstile turnstile(&predictions_, kPredictionsAtATime);
  if (!turnstile.passed()) return BusyAnswer("another prediction");
  const absl::StatusOr<Prediction> prediction =
      PredictorOf(run)->Predict(model->config.model(), *features);
  if (!prediction.ok()) return ErrorAnswer(prediction.status());
  Json json = PredictionJson(*model, *prediction);
  json["run"] = run.id();
  return JsonAnswer(json);
}

std::optional<HttpResponse> DashboardApi::Refuse(const HttpRequest& request, const Run& run) {
  if (options_.token.empty()) {
    return JsonError(403, "read-only: the evaluator was started without --auth_token_file");
  }
  absl::string_view given = request.headers.contains("authorization")
                                ? absl::string_view(request.headers.at("authorization"))
                                : absl::string_view();
  if (!absl::ConsumePrefix(&given, "Bearer ") || !SameToken(given, options_.token)) {
    if (warnings_.Take(request.client) == absl::ZeroDuration()) {
      LogWarning("dashboard: ", request.client, " asked for a change without the job's token");
    }
    HttpResponse response = JsonError(401, "expected the job's token: Authorization: Bearer TOKEN");
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  if (!run.live() || options_.actions == nullptr) {
    return JsonError(409, "this is not the job of the evaluator, or that has no chief");
  }
  return std::nullopt;
}

HttpResponse DashboardApi::EndTraining(const HttpRequest& request, const Run& run) {
  if (auto refused = Refuse(request, run)) return *std::move(refused);
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  const std::string reason = TextAt(*body, "reason").value_or("");
  if (!IsLine(reason, kMaxReasonBytes)) {
    return JsonError(400,
                     absl::StrCat("reason: expected a line of 1 to ", kMaxReasonBytes, " bytes"));
  }
  LogInfo("from the dashboard (", request.client, "): end the training: ", reason);
  return Taken(options_.actions->EndTraining(reason));
}

HttpResponse DashboardApi::SetMode(const HttpRequest& request, const Run& run) {
  if (auto refused = Refuse(request, run)) return *std::move(refused);
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  const std::string mode = TextAt(*body, "mode").value_or("");
  if (!IsLine(mode, kMaxModeBytes)) {
    return JsonError(400, "mode: expected async, ssp:N, sync:N or sync:N/M");
  }
  LogInfo("from the dashboard (", request.client, "): set the mode to ", mode);
  return Taken(options_.actions->SetMode(mode));
}

}  // namespace keelson
