#include "dashboard/api/api.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "dashboard/api/api_request.h"
#include "dashboard/api/form_view.h"
#include "dashboard/api/run_answers.h"
#include "dashboard/api/run_view.h"

namespace keelson {
namespace {

constexpr char kVersion[] = KEELSON_VERSION;
constexpr size_t kMaxRunsOfEvents = 64;

HttpResponse NotFound() {
  return JsonError(404, "no such resource; docs/dashboard-api.md lists them");
}

HttpResponse WrongMethod(const char* allowed) {
  HttpResponse response = JsonError(405, absl::StrCat("expected ", allowed));
  response.headers.emplace_back("Allow", allowed);
  return response;
}

bool IsReading(const HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

}  // namespace

DashboardApi::DashboardApi(Options options)
    : runs_(options.runs),
      updates_(options.updates),
      clock_(options.clock),
      predictions_(std::move(options.new_predictor)),
      changes_(options.actions, std::move(options.token), options.clock),
      routes_(Routes()) {}

std::vector<DashboardApi::Route> DashboardApi::Routes() {
  const auto call = [](auto* object, auto method) {
    return
        [=](const HttpRequest& request, const Run& run) { return (object->*method)(request, run); };
  };
  return {
      {"", false, RunAnswer},
      {"/series", false, SeriesAnswer},
      {"/series/data", false, SeriesDataAnswer},
      {"/series.csv", false, SeriesFileAnswer},
      {"/snapshots", false, SnapshotsAnswer},
      {"/snapshots/compare", false, call(&comparisons_, &Comparisons::Compare)},
      {"/cluster", false, ClusterAnswer},
      {"/placement", false, PlacementAnswer},
      {"/report", false, ReportAnswer},
      {"/model", false, ModelAnswer},
      {"/form", false, FormAnswer},
      {"/predict", true, call(&predictions_, &Predictions::Predict)},
      {"/nearest", true, call(&predictions_, &Predictions::Nearest)},
      {"/actions/end_training", true, call(&changes_, &JobChanges::EndTraining)},
      {"/actions/set_mode", true, call(&changes_, &JobChanges::SetMode)},
  };
}

HttpResponse DashboardApi::Handle(const HttpRequest& request) const {
  absl::string_view rest = request.path;
  if (!absl::ConsumePrefix(&rest, "/api/v1/")) return NotFound();
  if (rest == "runs") return IsReading(request) ? Runs() : WrongMethod("GET, HEAD");
  if (rest == "events") return IsReading(request) ? Events(request) : WrongMethod("GET, HEAD");
  if (absl::ConsumePrefix(&rest, "runs/")) return OfRun(request, rest);
  return NotFound();
}

HttpResponse DashboardApi::OfRun(const HttpRequest& request, absl::string_view rest) const {
  const absl::string_view id = rest.substr(0, rest.find('/'));
  const absl::string_view path = rest.substr(id.size());
  for (const Route& route : routes_) {
    if (path != route.path) continue;
    const std::shared_ptr<Run> run = runs_->Find(id);
    if (run == nullptr) return JsonError(404, "no such run; /api/v1/runs lists them");
    if (route.post && request.method != "POST") return WrongMethod("POST");
    if (!route.post && !IsReading(request)) return WrongMethod("GET, HEAD");
    return route.answer(request, *run);
  }
  return NotFound();
}

HttpResponse DashboardApi::Runs() const {
  Json list = Json::array();
  for (const std::shared_ptr<Run>& run : runs_->All()) {
    run->Read([&](const RunData& data) { list.push_back(RunEntryJson(*run, data)); });
  }
  return JsonAnswer({{"runs", std::move(list)},
                     {"read_only", changes_.read_only()},
                     {"version", kVersion},
                     {"time", ToSeconds(clock_->Now())}});
}

HttpResponse DashboardApi::Events(const HttpRequest& request) const {
  std::vector<std::string> ids = request.Parameters("run");
  if (ids.size() > kMaxRunsOfEvents) {
    return JsonError(
        400, absl::StrCat("run: expected at most ", kMaxRunsOfEvents, ", found ", ids.size()));
  }
  for (const std::string& id : ids) {
    if (runs_->Find(id) == nullptr) return JsonError(404, "run: no such run");
  }
  HttpResponse response;
  response.events = updates_->Open(std::move(ids));
  return response;
}

}  // namespace keelson
