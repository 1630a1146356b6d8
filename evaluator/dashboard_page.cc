#include "evaluator/dashboard_page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {
namespace {

constexpr size_t kMostRows = 500;
constexpr char kLoss[] = "loss";

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="5">
<title>Evaluations</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
h1 { font-size: 1.3em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2em 1em; text-align: right; border-bottom: 1px solid #ddd; }
td.best { font-weight: bold; background: #dff0d8; }
@media (prefers-color-scheme: dark) {
body { color: #ddd; background: #1c1c1c; }
th, td { border-color: #444; }
td.best { background: #2c4a2c; }
}
</style>
</head>
<body>
)";

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string Number(double value) { return std::isfinite(value) ? absl::StrCat(value) : "–"; }

// The loss first.
std::vector<std::string> MetricNames(const Evaluations& evaluations) {
  std::set<std::string> names;
  for (const auto& [step, record] : evaluations) {
    for (const auto& [name, value] : record.metrics) names.insert(name);
  }
  std::vector<std::string> ordered(names.begin(), names.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const std::string& name) { return name == kLoss; });
  return ordered;
}

// The best value of each metric and the first step that has it.
using BestValues = std::map<std::string, std::pair<double, int64_t>>;

BestValues FindBest(const Evaluations& evaluations) {
  BestValues best;
  for (const auto& [step, record] : evaluations) {
    for (const auto& [name, value] : record.metrics) {
      if (!std::isfinite(value)) continue;
      const auto [found, inserted] = best.emplace(name, std::make_pair(value, step));
      const double known = found->second.first;
      const bool better = name == kLoss ? value < known : value > known;
      if (!inserted && better) found->second = {value, step};
    }
  }
  return best;
}

std::string Cell(const EvaluationRecord& record, const std::string& metric,
                 const BestValues& best) {
  const auto value = record.metrics.find(metric);
  if (value == record.metrics.end()) return "<td></td>";
  const auto found = best.find(metric);
  const bool marked = found != best.end() && found->second.second == record.step;
  return absl::StrCat(marked ? "<td class=\"best\">" : "<td>", Number(value->second), "</td>");
}

std::string Row(const EvaluationRecord& record, const std::vector<std::string>& metrics,
                const BestValues& best) {
  std::string row = absl::StrCat(
      "<tr><td>", record.step, "</td><td>",
      absl::FormatTime("%Y-%m-%d %H:%M:%SZ", record.wall_time, absl::UTCTimeZone()), "</td>");
  for (const std::string& metric : metrics) row += Cell(record, metric, best);
  absl::StrAppend(&row, "<td>", record.examples, "</td><td>", Number(record.seconds),
                  "</td></tr>\n");
  return row;
}

std::string Table(const Evaluations& evaluations) {
  const std::vector<std::string> metrics = MetricNames(evaluations);
  const BestValues best = FindBest(evaluations);
  std::string table = "<table>\n<thead><tr><th>step</th><th>time</th>";
  for (const std::string& metric : metrics) {
    absl::StrAppend(&table, "<th>", Escape(metric), "</th>");
  }
  absl::StrAppend(&table, "<th>examples</th><th>seconds</th></tr></thead>\n<tbody>\n");
  size_t rows = 0;
  for (auto entry = evaluations.rbegin(); entry != evaluations.rend() && rows < kMostRows;
       ++entry, ++rows) {
    table += Row(entry->second, metrics, best);
  }
  return table + "</tbody>\n</table>\n";
}

std::string Summary(const Evaluations& evaluations) {
  if (evaluations.empty()) return "<p>No snapshot has been evaluated yet.</p>\n";
  std::string text = absl::StrCat("<p>Snapshots evaluated: ", evaluations.size());
  for (const auto& [name, found] : FindBest(evaluations)) {
    absl::StrAppend(&text, "; best ", Escape(name), " ", Number(found.first), " at step ",
                    found.second);
  }
  if (evaluations.size() > kMostRows) {
    absl::StrAppend(&text, "; the newest ", kMostRows, " are shown");
  }
  return text + ". All of them: <a href=\"api/v1/evaluations\">JSON</a>.</p>\n";
}

}  // namespace

std::string EvaluationsAsHtml(const std::string& model_dir, const Evaluations& evaluations) {
  std::string page = absl::StrCat(kHead, "<h1>Evaluations of ", Escape(model_dir), "</h1>\n",
                                  Summary(evaluations));
  if (!evaluations.empty()) page += Table(evaluations);
  return page + "</body>\n</html>\n";
}

std::string EvaluationsAsJson(const std::string& model_dir, const Evaluations& evaluations) {
  const nlohmann::json directory = model_dir;
  std::string text = absl::StrCat(
      "{\"model_dir\":", directory.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
      ",\"evaluations\":[");
  const char* separator = "";
  for (const auto& [step, record] : evaluations) {
    const std::string line = FormatEvaluationRecord(record);
    absl::StrAppend(&text, separator, absl::string_view(line).substr(0, line.size() - 1));
    separator = ",";
  }
  return text + "]}\n";
}

}  // namespace keelson
