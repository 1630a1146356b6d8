#include "evaluator/dashboard.h"

#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";
constexpr char kJson[] = "application/json";

// A browser loads nothing else and runs nothing, whatever the page has in it.
HttpAnswer Page(const char* content_type, std::string body) {
  return {200,
          content_type,
          std::move(body),
          {{"Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"},
           {"X-Content-Type-Options", "nosniff"},
           {"Referrer-Policy", "no-referrer"},
           {"Cache-Control", "no-store"}}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dashboard>> Dashboard::Start(int port,
                                                            const std::string& model_dir) {
  std::unique_ptr<Dashboard> dashboard(new Dashboard(model_dir));
  HttpEndpoint::Options options;
  options.flag = "--dashboard_port";
  options.port = port;
  ASSIGN_OR_RETURN(dashboard->endpoint_,
                   HttpEndpoint::Start(options, [self = dashboard.get()](absl::string_view path) {
                     return self->Answer(path);
                   }));
  LogInfo("dashboard on port ", dashboard->port());
  return dashboard;
}

void Dashboard::Add(const EvaluationRecord& record) {
  MutexLock lock(&mu_);
  evaluations_[record.step] = record;
}

HttpAnswer Dashboard::Answer(absl::string_view path) const {
  if (path == "/healthz") return {200, kPlainText, "alive\n", {}};
  MutexLock lock(&mu_);
  if (path == "/") return Page(kHtml, EvaluationsAsHtml(model_dir_, evaluations_));
  if (path == "/api/v1/evaluations") {
    return Page(kJson, EvaluationsAsJson(model_dir_, evaluations_));
  }
  return {404, kPlainText, "not found; try /, /api/v1/evaluations or /healthz\n", {}};
}

}  // namespace keelson
