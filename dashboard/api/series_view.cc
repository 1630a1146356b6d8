#include "dashboard/api/series_view.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "dashboard/runs/json.h"

namespace keelson {
namespace {

constexpr size_t kStreamedPoints = 2000;
// The size of a number with its comma.
constexpr size_t kNumberBytes = 16;

// `"key":[…]`
template <typename Value>
void AppendColumn(const char* key, const std::vector<uint32_t>& positions, const Value& value,
                  std::string* out) {
  absl::StrAppend(out, "\"", key, "\":[");
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendNumber(value(positions[i]), out);
  }
  out->push_back(']');
}

void AppendColumns(const TimeSeries& series, const std::vector<uint32_t>& positions,
                   std::string* out) {
  out->reserve(out->size() + 3 * kNumberBytes * positions.size());
  AppendColumn(
      "step", positions, [&](uint32_t i) { return series.at(i).step; }, out);
  out->push_back(',');
  AppendColumn(
      "time", positions, [&](uint32_t i) { return series.at(i).time; }, out);
  out->push_back(',');
  AppendColumn(
      "value", positions, [&](uint32_t i) { return series.at(i).value; }, out);
}

// `{"run":"id",`
void AppendRun(const Run& run, std::string* out) {
  out->append("{\"run\":");
  AppendText(run.id(), out);
  out->push_back(',');
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string SeriesListJson(const Run& run, const RunData& data) {
  Json list = Json::array();
  for (const auto& [name, series] : data.series) {
    if (series.size() == 0) continue;
    const SeriesPoint last = series.at(series.size() - 1);
    list.push_back({{"name", name},
                    {"points", series.size()},
                    {"last", {{"step", last.step}, {"time", last.time}, {"value", last.value}}}});
  }
  return DumpJson({{"run", run.id()}, {"series", std::move(list)}});
}

std::string SeriesDataJson(const Run& run, const RunData& data, const CurveQuery& query) {
  std::string out;
  AppendRun(run, &out);
  absl::StrAppend(&out, "\"x\":\"", query.axis == CurveAxis::kStep ? "step" : "time",
                  "\",\"series\":[");
  bool first = true;
  for (const std::string& name : query.names) {
    const auto found = data.series.find(name);
    if (found == data.series.end()) continue;
    size_t total = 0;
    const std::vector<uint32_t> positions =
        found->second.Select(query.axis, query.range, query.points, &total);
    absl::StrAppend(&out, first ? "" : ",", "{\"name\":");
    first = false;
    AppendText(name, &out);
    absl::StrAppend(&out, ",\"total\":", total, ",");
    AppendColumns(found->second, positions, &out);
    out.push_back('}');
  }
  out.append("]}");
  return out;
}

std::string SeriesCsv(const RunData& data, const std::vector<std::string>& names) {
  std::string out = "series,step,time,value\n";
  for (const std::string& name : names) {
    const auto found = data.series.find(name);
    if (found == data.series.end()) continue;
    const std::string field = CsvField(name);
    const TimeSeries& series = found->second;
    out.reserve(out.size() + series.size() * (field.size() + 3 * kNumberBytes));
    for (size_t i = 0; i < series.size(); ++i) {
      const SeriesPoint point = series.at(i);
      out.append(field).push_back(',');
      AppendNumber(point.step, &out);
      out.push_back(',');
      AppendNumber(point.time, &out);
      out.push_back(',');
      if (std::isfinite(point.value)) {
        AppendNumber(point.value, &out);
      } else {
        out.append("nan");
      }
      out.push_back('\n');
    }
  }
  return out;
}

std::string NewPointsJson(const Run& run, const RunData& data, uint64_t revision) {
  std::string out;
  for (const auto& [name, series] : data.series) {
    if (series.revision() <= revision) continue;
    CurveRange range;
    range.from = static_cast<double>(series.ChangedFrom(revision));
    size_t total = 0;
    const std::vector<uint32_t> positions =
        series.Select(CurveAxis::kStep, range, kStreamedPoints, &total);
    if (positions.empty()) continue;
    if (out.empty()) {
      AppendRun(run, &out);
      out.append("\"series\":[");
    } else {
      out.push_back(',');
    }
    out.append("{\"name\":");
    AppendText(name, &out);
    out.push_back(',');
    AppendColumns(series, positions, &out);
    out.push_back('}');
  }
  if (!out.empty()) out.append("]}");
  return out;
}

}  // namespace keelson
