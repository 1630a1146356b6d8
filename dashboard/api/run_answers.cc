#include "dashboard/api/run_answers.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "dashboard/api/api_request.h"
#include "dashboard/api/model_view.h"
#include "dashboard/api/run_view.h"
#include "dashboard/api/series_view.h"
#include "dashboard/runs/file_shapes.h"

namespace keelson {
namespace {

constexpr size_t kMaxNames = 64;
constexpr int64_t kMaxPoints = 20000;
// A file for download is made in memory.
constexpr size_t kMaxFilePoints = TimeSeries::kMaxPoints;
constexpr uint64_t kMaxReportBytes = uint64_t{64} << 20;

HttpResponse JsonOrNone(const Json& json, absl::string_view none) {
  return json.is_null() ? JsonError(404, none) : JsonAnswer(json);
}

// What `view` makes of the run's data, as Json or text.
template <typename View>
HttpResponse AnswerOf(const Run& run, View view) {
  std::invoke_result_t<View, const Run&, const RunData&> found;
  run.Read([&](const RunData& data) { found = view(run, data); });
  return JsonAnswer(std::move(found));
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
  ASSIGN_OR_RETURN(query.names, NamesOf(request));
  ASSIGN_OR_RETURN(const std::optional<int64_t> points,
                   IntegerParameter(request, "points", 2, kMaxPoints));
  if (points.has_value()) query.points = *points;
  const std::string axis = request.Parameter("x").value_or("step");
  if (axis != "step" && axis != "time") {
    return absl::InvalidArgumentError("x: expected step or time");
  }
  query.axis = axis == "step" ? CurveAxis::kStep : CurveAxis::kTime;
  ASSIGN_OR_RETURN(const std::optional<double> from, NumberParameter(request, "from"));
  ASSIGN_OR_RETURN(const std::optional<double> to, NumberParameter(request, "to"));
  query.range = {from, to};
  return query;
}

}  // namespace

HttpResponse RunAnswer(const HttpRequest&, const Run& run) { return AnswerOf(run, RunJson); }

HttpResponse ClusterAnswer(const HttpRequest&, const Run& run) {
  return AnswerOf(run, ClusterJson);
}

HttpResponse PlacementAnswer(const HttpRequest&, const Run& run) {
  Json json;
  std::string trouble;
  run.Read([&](const RunData& data) {
    json = PlacementJson(run, data);
    trouble = data.placement_trouble;
  });
  return JsonOrNone(json, trouble.empty() ? "the placement is not known" : trouble);
}

HttpResponse ModelAnswer(const HttpRequest&, const Run& run) {
  Json json;
  run.Read([&](const RunData& data) { json = ModelJson(run, data); });
  return JsonOrNone(json, "the model's configuration is not known");
}

HttpResponse SeriesAnswer(const HttpRequest&, const Run& run) {
  return AnswerOf(run, SeriesListJson);
}

HttpResponse SeriesDataAnswer(const HttpRequest& request, const Run& run) {
  const absl::StatusOr<CurveQuery> query = CurveQueryOf(request);
  if (!query.ok()) return ErrorAnswer(query.status());
  std::string body;
  run.Read([&](const RunData& data) { body = SeriesDataJson(run, data, *query); });
  return JsonAnswer(std::move(body));
}

HttpResponse SeriesFileAnswer(const HttpRequest& request, const Run& run) {
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

HttpResponse SnapshotsAnswer(const HttpRequest&, const Run& run) {
  return AnswerOf(run, SnapshotsJson);
}

HttpResponse ReportAnswer(const HttpRequest& request, const Run& run) {
  std::set<int64_t> steps;
  run.Read([&](const RunData& data) { steps = data.reports; });
  const auto asked = IntegerParameter(request, "step", 0, std::numeric_limits<int64_t>::max());
  if (!asked.ok()) return ErrorAnswer(asked.status());
  if (steps.empty()) return JsonError(404, "there is no report yet");
  const int64_t step = asked->value_or(*steps.rbegin());
  if (!steps.contains(step))
    return JsonError(404, absl::StrCat("there is no report of step ", step));
  const auto text =
      ReadBoundedFile(ReportFilePath(run.model_dir(), step), kMaxReportBytes, run.file_system());
  std::optional<Json> json = text.ok() ? ParseJson(*text) : std::nullopt;
  if (!json.has_value() || !json->is_object()) {
    return JsonError(404,
                     absl::StrCat("the report of step ", step, " cannot be read: ",
                                  text.ok() ? "it is no object of JSON" : text.status().message()));
  }
  const absl::Status shape = CheckReportShape(*json);
  if (!shape.ok()) {
    return JsonError(
        404, absl::StrCat("the report of step ", step, " cannot be shown: ", shape.message()));
  }
  (*json)["run"] = run.id();
  (*json)["step"] = step;
  (*json)["steps"] = steps;
  return JsonAnswer(*json);
}

}  // namespace keelson
