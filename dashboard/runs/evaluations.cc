#include "dashboard/runs/evaluations.h"

#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "dashboard/runs/json.h"

namespace keelson {
namespace {

constexpr char kLoss[] = "loss";
constexpr char kStep[] = "step";
constexpr char kWallTime[] = "wall_time";
constexpr char kExamples[] = "examples";
constexpr char kSeconds[] = "seconds";
constexpr size_t kMaxMetrics = 100;
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxLineBytes = size_t{1} << 20;

bool IsMetric(const std::string& key) {
  return key != kStep && key != kWallTime && key != kExamples && key != kSeconds &&
         key.size() <= kMaxNameBytes;
}

}  // namespace

std::optional<Evaluation> ParseEvaluation(absl::string_view line) {
  const std::optional<Json> json = ParseJson(line);
  if (!json.has_value()) return std::nullopt;
  const std::optional<int64_t> step = IntegerAt(*json, kStep);
  if (!step.has_value() || *step < 0) return std::nullopt;
  Evaluation evaluation;
  evaluation.step = *step;
  evaluation.time = NumberAt(*json, kWallTime).value_or(0);
  evaluation.seconds = NumberAt(*json, kSeconds).value_or(0);
  evaluation.examples = IntegerAt(*json, kExamples).value_or(0);
  for (const auto& [key, value] : json->items()) {
    if (!IsMetric(key) || evaluation.metrics.size() >= kMaxMetrics) continue;
    if (value.is_number()) {
      evaluation.metrics[key] = value.get<double>();
    } else if (value.is_null()) {
      evaluation.metrics[key] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  return evaluation;
}

void TakeMetrics(const Evaluation& evaluation, MetricFigures* figures) {
  for (const auto& [name, value] : evaluation.metrics) {
    MetricFigure& figure = (*figures)[name];
    figure.last_step = evaluation.step;
    figure.last = value;
    TakeIfBest(name, evaluation.step, value, &figure.best);
  }
}

std::string PrimaryMetric(const std::map<int64_t, Evaluation>& evaluations,
                          const std::vector<std::string>& preferred) {
  if (evaluations.empty()) return "";
  const std::map<std::string, double>& metrics = evaluations.rbegin()->second.metrics;
  for (const std::string& name : preferred) {
    if (metrics.contains(name)) return name;
  }
  for (const auto& entry : metrics) {
    if (entry.first != kLoss) return entry.first;
  }
  return metrics.empty() ? "" : kLoss;
}

bool EvaluationTail::Poll(size_t max_bytes, std::vector<Evaluation>* evaluations) {
  const absl::StatusOr<bool> more = tail_.Read(max_bytes);
  if (!more.ok()) {
    trouble_ = absl::IsNotFound(more.status()) ? absl::OkStatus() : more.status();
    return false;
  }
  if (tail_.position() == 0) {
    lines_ = 0;
    bad_lines_ = 0;
  }
  if (!TakeLines(evaluations)) {
    restarted_ = true;
    tail_.Restart();
    return true;
  }
  if (!*more) restarted_ = false;
  trouble_ = absl::OkStatus();
  if (bad_lines_ > 0) {
    trouble_ = absl::DataLossError(
        absl::StrCat(tail_.path(), ": ", bad_lines_, " of ", lines_, " lines are no evaluations"));
  }
  return *more;
}

bool EvaluationTail::TakeLines(std::vector<Evaluation>* evaluations) {
  const absl::string_view text = tail_.pending();
  const bool first_pass = tail_.position() == 0 || restarted_;
  size_t consumed = 0;
  while (true) {
    const size_t length = text.substr(consumed).find('\n');
    if (length == absl::string_view::npos) break;
    std::optional<Evaluation> evaluation = ParseEvaluation(text.substr(consumed, length));
    if (!evaluation.has_value() && !first_pass) return false;
    consumed += length + 1;
    ++lines_;
    if (evaluation.has_value()) {
      evaluations->push_back(*std::move(evaluation));
    } else {
      ++bad_lines_;
    }
  }
  // A line this long was not written by Keelson.
  if (text.size() - consumed > kMaxLineBytes) consumed = text.size();
  tail_.Consume(consumed);
  return true;
}

}  // namespace keelson
