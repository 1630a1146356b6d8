#include "dashboard/dashboard.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/startup/metrics_endpoint.h"

namespace keelson {
namespace {

constexpr int kThreads = 4;
constexpr int kStreams = 16;
// Twice as many as a browser opens to one server at a time.
constexpr int kConnectionsPerClient = 12;
constexpr int64_t kMaxBodyBytes = int64_t{1} << 20;
constexpr double kRequestsPerSecond = 50;
// Long enough for a phone with a slow connection.
constexpr absl::Duration kConnectionTimeout = absl::Seconds(5);

// A browser loads nothing from elsewhere and runs no script but the page's own, whatever a run's
// files have in them.
constexpr const char* kSecurityHeaders[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

DashboardApi::Options ApiOptions(const Dashboard::Options& options, const RunSet* runs,
                                 LiveUpdates* updates) {
  DashboardApi::Options api;
  api.runs = runs;
  api.updates = updates;
  api.actions = options.actions;
  api.clock = options.clock;
  api.new_predictor = options.new_predictor;
  api.token = options.token;
  return api;
}

HttpServer::Options ServerOptions(const Dashboard::Options& dashboard) {
  HttpServer::Options options;
  options.flag = "--dashboard_port";
  options.port = dashboard.port;
  options.address_flag = "--dashboard_address";
  options.address = dashboard.address;
  options.hosts_flag = "--dashboard_hosts";
  options.hosts = dashboard.hosts;
  options.threads = kThreads;
  options.connections_per_client = kConnectionsPerClient;
  options.max_streams = kStreams;
  options.max_body_bytes = kMaxBodyBytes;
  options.requests_per_second = kRequestsPerSecond;
  options.connection_timeout = kConnectionTimeout;
  options.clock = dashboard.clock;
  return options;
}

}  // namespace

Dashboard::Dashboard(Options options, std::unique_ptr<RunSet> runs)
    : telemetry_(options.telemetry),
      assets_(options.assets.contains("/") ? options.assets : PlainDashboardAssets()),
      runs_(std::move(runs)),
      updates_(runs_.get(), options.clock),
      api_(ApiOptions(options, runs_.get(), &updates_)) {}

absl::StatusOr<std::unique_ptr<Dashboard>> Dashboard::Start(Options options) {
  const HttpServer::Options server = ServerOptions(options);
  const absl::Duration poll_interval = options.poll_interval;
  ASSIGN_OR_RETURN(std::unique_ptr<RunSet> runs, RunSet::Create(options.runs));
  std::unique_ptr<Dashboard> dashboard(new Dashboard(std::move(options), std::move(runs)));
  ASSIGN_OR_RETURN(dashboard->server_,
                   HttpServer::Start(server, [self = dashboard.get()](const HttpRequest& request) {
                     return self->Answer(request);
                   }));
  dashboard->poller_ =
      std::make_unique<RunPoller>(dashboard->runs_.get(), &dashboard->updates_, poll_interval);
  LogInfo("dashboard on port ", dashboard->port());
  return dashboard;
}

Dashboard::~Dashboard() {
  updates_.Close();
  server_ = nullptr;
}

HttpResponse Dashboard::Answer(const HttpRequest& request) {
  HttpResponse response = Route(request);
  for (const auto& header : kSecurityHeaders) response.headers.emplace_back(header[0], header[1]);
  if (!response.HasHeader("Cache-Control")) {
    response.headers.emplace_back("Cache-Control", "no-store");
  }
  return response;
}

HttpResponse Dashboard::Route(const HttpRequest& request) {
  if (absl::StartsWith(request.path, "/api/")) return api_.Handle(request);
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse response = JsonError(405, "expected GET, HEAD");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  const auto asset = assets_.find(request.path);
  if (asset != assets_.end()) return AnswerAsset(request, asset->second);
  if (telemetry_ != nullptr) {
    std::optional<HttpResponse> probe = AnswerProbe(request.path, *telemetry_);
    if (probe.has_value()) return *std::move(probe);
  }
  return JsonError(404, "not found; try /, /api/v1/runs, /metrics, /healthz or /readyz");
}

}  // namespace keelson
