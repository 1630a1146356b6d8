#include "dashboard/api/comparisons.h"

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "dashboard/api/api_request.h"
#include "dashboard/runs/snapshot_comparison.h"

namespace keelson {
namespace {

constexpr size_t kKeptComparisons = 8;
constexpr int kComparisonsAtATime = 1;

absl::StatusOr<int64_t> StepParameter(const HttpRequest& request, absl::string_view name) {
  const auto step = IntegerParameter(request, name, 0, std::numeric_limits<int64_t>::max());
  if (!step.ok()) return step.status();
  if (step->has_value()) return **step;
  return absl::InvalidArgumentError(absl::StrCat(name, ": expected a step, found none"));
}

// One of the two snapshots of a comparison.
struct Side {
  int64_t step = 0;
  bool known = false;
  StoredSnapshot snapshot;
  std::map<std::string, double> metrics;
};

Side SideOf(const RunData& data, int64_t step) {
  Side side;
  side.step = step;
  const auto snapshot = data.snapshots.find(step);
  if (snapshot != data.snapshots.end()) side.snapshot = snapshot->second;
  const auto evaluation = data.evaluations.find(step);
  if (evaluation != data.evaluations.end()) side.metrics = evaluation->second.metrics;
  side.known = snapshot != data.snapshots.end() || evaluation != data.evaluations.end();
  return side;
}

Json MetricChanges(const Side& a, const Side& b) {
  Json list = Json::array();
  for (const auto& [name, value] : a.metrics) {
    const auto other = b.metrics.find(name);
    if (other == b.metrics.end()) continue;
    list.push_back(
        {{"name", name}, {"a", value}, {"b", other->second}, {"change", other->second - value}});
  }
  return list;
}

Json VariablesJson(const std::vector<VariableChange>& changes) {
  Json list = Json::array();
  for (const VariableChange& change : changes) {
    list.push_back({{"name", change.name},
                    {"shape", change.shape.dims()},
                    {"norm_a", change.norm_a},
                    {"norm_b", change.norm_b},
                    {"norm_change", change.norm_change},
                    {"max_change", change.max_change},
                    {"relative_change", change.relative_change}});
  }
  return list;
}

std::string KeyOf(const Run& run, const Side& a, const Side& b) {
  return absl::StrCat(run.id(), " ", a.step, " ", a.snapshot.time, " ", b.step, " ",
                      b.snapshot.time);
}

// The answer without what the variables' values say.
Json ComparisonJson(const Run& run, const Side& a, const Side& b) {
  return {{"run", run.id()}, {"a", a.step}, {"b", b.step}, {"metrics", MetricChanges(a, b)}};
}

}  // namespace

HttpResponse Comparisons::Compare(const HttpRequest& request, const Run& run) {
  const absl::StatusOr<int64_t> step_a = StepParameter(request, "a");
  if (!step_a.ok()) return ErrorAnswer(step_a.status());
  const absl::StatusOr<int64_t> step_b = StepParameter(request, "b");
  if (!step_b.ok()) return ErrorAnswer(step_b.status());
  Side a;
  Side b;
  run.Read([&](const RunData& data) {
    a = SideOf(data, *step_a);
    b = SideOf(data, *step_b);
  });
  if (!a.known || !b.known) return JsonError(404, "no such snapshot; …/snapshots lists them");
  Json json = ComparisonJson(run, a, b);
  if (!a.snapshot.exists || !b.snapshot.exists) return JsonAnswer(json);
  const std::string key = KeyOf(run, a, b);
  std::optional<Json> variables = Find(key);
  if (!variables.has_value()) {
    const Turnstile turnstile(&under_way_, kComparisonsAtATime);
    if (!turnstile.passed()) return BusyAnswer("another comparison");
    const auto changes = CompareSnapshots(a.snapshot.prefix, b.snapshot.prefix, run.file_system());
    if (!changes.ok()) {
      json["error"] = std::string(changes.status().message());
      return JsonAnswer(json);
    }
    variables = VariablesJson(*changes);
    Keep(key, *variables);
  }
  json["variables"] = *std::move(variables);
  return JsonAnswer(json);
}

std::optional<Json> Comparisons::Find(const std::string& key) {
  MutexLock lock(&mu_);
  for (const Comparison& comparison : compared_) {
    if (comparison.key == key) return comparison.variables;
  }
  return std::nullopt;
}

void Comparisons::Keep(const std::string& key, const Json& variables) {
  MutexLock lock(&mu_);
  compared_.push_front({key, variables});
  if (compared_.size() > kKeptComparisons) compared_.pop_back();
}

}  // namespace keelson
