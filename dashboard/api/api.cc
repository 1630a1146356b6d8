#include "dashboard/api/api.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "dashboard/api/api_request.h"
#include "dashboard/api/run_view.h"
#include "dashboard/api/series_view.h"

namespace keelson {
namespace {

constexpr char kVersion[] = KEELSON_VERSION;
constexpr size_t kMaxNames = 64;
constexpr int64_t kMaxPoints = 20000;
// A file for download is made in memory.
constexpr size_t kMaxFilePoints = TimeSeries::kMaxPoints;

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

HttpResponse JsonOrNone(const Json& json, absl::string_view none) {
  return json.is_null() ? JsonError(404, none) : JsonAnswer(json);
}

absl::StatusOr<std::vector<std::string>> NamesOf(const HttpRequest& request) {
  std::vector<std::string> names = request.Parameters("name");
  if (names.empty() || names.size() > kMaxNames) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: expected 1 to ", kMaxNames, ", found ", names.size()));
  }
  return names;
}

absl::StatusOr<CurveQuery> CurveQueryOf(const HttpRequest& request) {
  CurveQuery query;
  auto names = NamesOf(request);
  if (!names.ok()) return names.status();
  query.names = *std::move(names);
  const auto points = IntegerParameter(request, "points", 2, kMaxPoints);
  if (!points.ok()) return points.status();
  if (points->has_value()) query.points = static_cast<size_t>(**points);
  const std::string axis = request.Parameter("x").value_or("step");
  if (axis != "step" && axis != "time") {
    return absl::InvalidArgumentError("x: expected step or time");
  }
  query.axis = axis == "step" ? CurveAxis::kStep : CurveAxis::kTime;
  const auto from = NumberParameter(request, "from");
  if (!from.ok()) return from.status();
  const auto to = NumberParameter(request, "to");
  if (!to.ok()) return to.status();
  query.range = {*from, *to};
  return query;
}

}  // namespace

const DashboardApi::Route DashboardApi::kRoutes[] = {
    {"", false, &DashboardApi::Overview},
    {"/series", false, &DashboardApi::Series},
    {"/series/data", false, &DashboardApi::SeriesData},
    {"/series.csv", false, &DashboardApi::SeriesFile},
    {"/snapshots", false, &DashboardApi::Snapshots},
    {"/snapshots/compare", false, &DashboardApi::Compare},
    {"/cluster", false, &DashboardApi::Cluster},
    {"/placement", false, &DashboardApi::Placement},
    {"/report", false, &DashboardApi::Report},
    {"/model", false, &DashboardApi::ModelOf},
    {"/predict", true, &DashboardApi::Predict},
    {"/actions/end_training", true, &DashboardApi::EndTraining},
    {"/actions/set_mode", true, &DashboardApi::SetMode},
};

HttpResponse DashboardApi::Handle(const HttpRequest& request) {
  absl::string_view rest = request.path;
  if (!absl::ConsumePrefix(&rest, "/api/v1/")) return NotFound();
  if (rest == "runs") return IsReading(request) ? Runs() : WrongMethod("GET, HEAD");
  if (rest == "events") return IsReading(request) ? Events(request) : WrongMethod("GET, HEAD");
  if (absl::ConsumePrefix(&rest, "runs/")) return OfRun(request, rest);
  return NotFound();
}

HttpResponse DashboardApi::OfRun(const HttpRequest& request, absl::string_view rest) {
  const absl::string_view id = rest.substr(0, rest.find('/'));
  const absl::string_view path = rest.substr(id.size());
  for (const Route& route : kRoutes) {
    if (path != route.path) continue;
    const std::shared_ptr<Run> run = options_.runs->Find(id);
    if (run == nullptr) return JsonError(404, "no such run; /api/v1/runs lists them");
    if (route.post && request.method != "POST") return WrongMethod("POST");
    if (!route.post && !IsReading(request)) return WrongMethod("GET, HEAD");
    return (this->*route.handler)(request, *run);
  }
  return NotFound();
}

HttpResponse DashboardApi::Runs() const {
  Json list = Json::array();
  for (const std::shared_ptr<Run>& run : options_.runs->All()) {
    run->Read([&](const RunData& data) { list.push_back(RunEntryJson(*run, data)); });
  }
  return JsonAnswer({{"runs", std::move(list)},
                     {"read_only", options_.token.empty() || options_.actions == nullptr},
                     {"version", kVersion},
                     {"time", ToSeconds(options_.clock->Now())}});
}

HttpResponse DashboardApi::Events(const HttpRequest& request) const {
  std::vector<std::string> ids = request.Parameters("run");
  if (ids.size() > kMaxNames) {
    return JsonError(400,
                     absl::StrCat("run: expected at most ", kMaxNames, ", found ", ids.size()));
  }
  for (const std::string& id : ids) {
    if (options_.runs->Find(id) == nullptr) return JsonError(404, "run: no such run");
  }
  HttpResponse response;
  response.events = options_.updates->Open(std::move(ids));
  return response;
}

HttpResponse DashboardApi::Overview(const HttpRequest&, const Run& run) {
  Json json;
  run.Read([&](const RunData& data) { json = RunJson(run, data); });
  return JsonAnswer(json);
}

HttpResponse DashboardApi::Cluster(const HttpRequest&, const Run& run) {
  Json json;
  run.Read([&](const RunData& data) { json = ClusterJson(run, data); });
  return JsonAnswer(json);
}

HttpResponse DashboardApi::Placement(const HttpRequest&, const Run& run) {
  Json json;
  std::string trouble;
  run.Read([&](const RunData& data) {
    json = PlacementJson(run, data);
    trouble = data.placement_trouble;
  });
  return JsonOrNone(json, trouble.empty() ? "the placement is not known" : trouble);
}

HttpResponse DashboardApi::ModelOf(const HttpRequest&, const Run& run) {
  Json json;
  run.Read([&](const RunData& data) { json = ModelJson(run, data); });
  return JsonOrNone(json, "the model's configuration is not known");
}

HttpResponse DashboardApi::Series(const HttpRequest&, const Run& run) {
  std::string body;
  run.Read([&](const RunData& data) { body = SeriesListJson(run, data); });
  return JsonAnswer(std::move(body));
}

HttpResponse DashboardApi::SeriesData(const HttpRequest& request, const Run& run) {
  const absl::StatusOr<CurveQuery> query = CurveQueryOf(request);
  if (!query.ok()) return ErrorAnswer(query.status());
  std::string body;
  run.Read([&](const RunData& data) { body = SeriesDataJson(run, data, *query); });
  return JsonAnswer(std::move(body));
}

HttpResponse DashboardApi::SeriesFile(const HttpRequest& request, const Run& run) {
  const auto names = NamesOf(request);
  if (!names.ok()) return ErrorAnswer(names.status());
  HttpResponse response;
  size_t points = 0;
  run.Read([&](const RunData& data) {
    for (const std::string& name : *names) {
      const auto found = data.series.find(name);
      if (found != data.series.end()) points += found->second.size();
    }
    if (points <= kMaxFilePoints) response.body = SeriesCsv(data, *names);
  });
  if (points > kMaxFilePoints) {
    return JsonError(400, absl::StrCat("name: expected curves of at most ", kMaxFilePoints,
                                       " points together, found ", points));
  }
  response.content_type = "text/csv; charset=utf-8";
  response.headers.emplace_back("Content-Disposition",
                                absl::StrCat("attachment; filename=\"", run.id(), "-series.csv\""));
  return response;
}

}  // namespace keelson
