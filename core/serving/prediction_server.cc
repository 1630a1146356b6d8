#include "core/serving/prediction_server.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/spec/model_spec.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kRefreshInterval = absl::Seconds(1);
constexpr int kThreads = 4;
constexpr int kConnectionsPerClient = 64;
constexpr int64_t kMaxBodyBytes = 16 << 20;
// Deeper than any request is.
constexpr int kMostDepth = 16;

HttpResponse JsonAnswer(int status, const Json& json) {
  HttpResponse response;
  response.status = status;
  response.content_type = kJson;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

int HttpStatusOf(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return 400;
  return absl::IsUnavailable(status) ? 503 : 500;
}

// Discarded: it is no JSON. What is nested too deeply is left out.
Json Parse(const std::string& text) {
  const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= kMostDepth; };
  return Json::parse(text, keep, /*allow_exceptions=*/false);
}

Json RowsJson(const std::vector<float>& outputs, int64_t width) {
  Json rows = Json::array();
  for (size_t begin = 0; begin < outputs.size(); begin += width) {
    Json row = Json::array();
    for (int64_t k = 0; k < width; ++k) {
      const float output = outputs[begin + k];
      row.push_back(std::isfinite(output) ? Json(output) : Json(nullptr));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

PredictionServer::PredictionServer(std::string name, int64_t outputs,
                                   std::unique_ptr<const InstanceReader> reader,
                                   std::unique_ptr<ServedModel> model)
    : path_(absl::StrCat("/v1/models/", name)),
      outputs_(outputs),
      reader_(std::move(reader)),
      model_(std::move(model)) {}

absl::StatusOr<std::unique_ptr<PredictionServer>> PredictionServer::Start(
    const v1::TrainConfig& config, const ServingFlags& flags, FileSystem* file_system,
    Clock* clock) {
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(config.model()));
  ASSIGN_OR_RETURN(std::unique_ptr<const InstanceReader> reader,
                   InstanceReader::Create(config, spec, file_system));
  // One thread: requests, which are small, share the cores.
  ASSIGN_OR_RETURN(std::unique_ptr<ServedModel> model,
                   ServedModel::Create(config, /*threads=*/1, file_system, clock));
  std::unique_ptr<PredictionServer> server(
      new PredictionServer(spec.name.empty() ? "model" : spec.name, spec.main_loss().outputs,
                           std::move(reader), std::move(model)));
  HttpServer::Options options;
  options.flag = "--serve";
  options.port = *flags.port;
  options.address_flag = "--serve_address";
  options.address = flags.address;
  options.hosts_flag = "--serve_hosts";
  options.hosts = flags.hosts;
  options.threads = kThreads;
  options.connections_per_client = kConnectionsPerClient;
  options.max_body_bytes = kMaxBodyBytes;
  options.clock = clock;
  ASSIGN_OR_RETURN(server->http_,
                   HttpServer::Start(options, [self = server.get()](const HttpRequest& request) {
                     return self->Answer(request);
                   }));
  server->follower_ = Thread([self = server.get()] { self->Follow(); });
  LogInfo("predictions on port ", server->port(), ": POST ", server->path_, ":predict");
  return server;
}

PredictionServer::~PredictionServer() {
  stop_.Raise();
  if (follower_.Joinable()) follower_.Join();
  http_ = nullptr;
}

void PredictionServer::Follow() {
  std::string trouble;
  do {
    const std::optional<int64_t> before = model_->step();
    const absl::Status status = model_->Refresh();
    if (!status.ok() && trouble != status.message()) {
      LogWarning("the newest snapshot is not served: ", status.message());
    }
    trouble = std::string(status.message());
    if (model_->step() != before) LogInfo("predictions are those of step ", *model_->step());
  } while (!stop_.WaitFor(kRefreshInterval));
}

HttpResponse PredictionServer::Answer(const HttpRequest& request) {
  if (request.path == path_ && request.method != "POST") return Version();
  if (request.path == absl::StrCat(path_, ":predict")) {
    if (request.method == "POST") return Predict(request.body);
    return JsonError(405, "expected POST");
  }
  return JsonError(404, absl::StrCat("expected GET ", path_, " or POST ", path_, ":predict"));
}

HttpResponse PredictionServer::Predict(const std::string& body) {
  const Json json = Parse(body);
  if (json.is_discarded()) return JsonError(400, "body: expected JSON, found something else");
  absl::StatusOr<Batch> batch = reader_->Read(json);
  if (!batch.ok()) return JsonError(HttpStatusOf(batch.status()), batch.status().message());
  const absl::StatusOr<ServedPrediction> prediction = model_->Predict(*std::move(batch));
  if (!prediction.ok()) {
    return JsonError(HttpStatusOf(prediction.status()), prediction.status().message());
  }
  const char* const key = json.contains("instances") ? "predictions" : "outputs";
  return JsonAnswer(200, {{key, RowsJson(prediction->outputs, outputs_)},
                          {"model_version", absl::StrCat(prediction->step)}});
}

HttpResponse PredictionServer::Version() const {
  Json versions = Json::array();
  if (const std::optional<int64_t> step = model_->step(); step.has_value()) {
    versions.push_back({{"version", absl::StrCat(*step)},
                        {"state", "AVAILABLE"},
                        {"status", {{"error_code", "OK"}, {"error_message", ""}}}});
  }
  return JsonAnswer(200, {{"model_version_status", std::move(versions)}});
}

}  // namespace keelson
