#include "dashboard/api/run_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/scoring/direction.h"
#include "dashboard/api/script_view.h"

namespace keelson {
namespace {

// Figures of the newest interval, shown for running jobs.
constexpr const char* kRates[] = {"steps_per_second", "examples_per_second", "staleness",
                                  "eta_seconds"};
constexpr const char* kValues[] = {"loss", "learning_rate", "epoch", "steps_per_epoch"};
// The number of newest snapshots listed of those that were deleted and are neither the best nor
// exported.
constexpr size_t kListedSnapshots = 500;

void CopyNumber(const Json& from, const char* key, Json* to) {
  if (const auto value = NumberAt(from, key)) (*to)[key] = *value;
}

// Copies a value; a number that is not finite becomes null.
void CopyValue(const Json& from, const char* key, Json* to) {
  CopyNumber(from, key, to);
  if (from.is_object() && from.contains(key) && from[key].is_null()) (*to)[key] = nullptr;
}

Json ValueAt(int64_t step, double value) { return {{"step", step}, {"value", value}}; }

Json MetricJson(const std::string& name, const MetricFigure& figure) {
  Json json = {{"name", name}};
  const Direction better = DirectionOf(name);
  if (better == Direction::kToOne) {
    json["best_at"] = 1;
  } else {
    json["higher_is_better"] = better == Direction::kMore;
  }
  json["last"] = ValueAt(figure.last_step, figure.last);
  if (figure.best.has_value()) json["best"] = ValueAt(figure.best->step, figure.best->value);
  return json;
}

bool Exists(const RunData& data, int64_t step) {
  const auto found = data.snapshots.find(step);
  return found != data.snapshots.end() && found->second.exists;
}

void AddBest(const RunData& data, Json* json) {
  const auto judged =
      data.model.has_value() ? data.model->judged_metrics() : std::vector<std::string>();
  const std::string metric = PrimaryMetric(data.evaluations, judged);
  const auto figure = data.metrics.find(metric);
  if (figure == data.metrics.end() || !figure->second.best.has_value()) return;
  const BestValue& best = *figure->second.best;
  (*json)["best"] = {{"metric", metric},
                     {"value", best.value},
                     {"step", best.step},
                     {"exists", Exists(data, best.step)}};
}

Json SnapshotFiguresJson(const RunData& data, absl::Time now) {
  Json json = {{"failures", 0}, {"error", ""}};
  if (const Json* const figures = ObjectAt(data.status, "snapshot")) {
    CopyNumber(*figures, "write_seconds", &json);
    json["failures"] = IntegerAt(*figures, "failures").value_or(0);
    json["error"] = TextAt(*figures, "error").value_or("");
  }
  for (auto entry = data.snapshots.rbegin(); entry != data.snapshots.rend(); ++entry) {
    if (!entry->second.exists) continue;
    json["step"] = entry->first;
    json["bytes"] = entry->second.bytes;
    json["age_seconds"] = std::max(0.0, ToSeconds(now) - entry->second.time);
    break;
  }
  return json;
}

Json TaskJson(const Run& run, const RunModel& model) {
  Json json = {{"parameters", model.num_parameters()}};
  if (model.external()) {
    if (const auto form = ScriptFormOf(run)) AddScriptTask(*form, &json);
    return json;
  }
  json["kind"] = model.kind();
  // Where there are several features, or ids, the page has no form for them.
  if (const FeatureSpec* const feature = model.spec.records.only_numbers()) {
    json["input_shape"] = feature->shape.dims();
  }
  if (!model.classes.empty()) json["classes"] = model.classes;
  return json;
}

// The newest step in the files of a run, for a run without a status of a chief.
int64_t NewestStep(const RunData& data) {
  int64_t step = 0;
  if (!data.snapshots.empty()) step = data.snapshots.rbegin()->first;
  if (!data.evaluations.empty()) step = std::max(step, data.evaluations.rbegin()->first);
  return step;
}

// The metrics in which a step is the best, by step.
using BestSteps = std::map<int64_t, std::vector<std::string>>;

BestSteps BestStepsOf(const RunData& data) {
  BestSteps steps;
  for (const auto& [name, figure] : data.metrics) {
    if (figure.best.has_value()) steps[figure.best->step].push_back(name);
  }
  return steps;
}

Json SnapshotJson(const RunData& data, const BestSteps& best_steps, int64_t step) {
  Json json = {{"step", step}, {"exists", Exists(data, step)}};
  const auto stored = data.snapshots.find(step);
  if (stored != data.snapshots.end()) {
    json["time"] = stored->second.time;
    json["bytes"] = stored->second.bytes;
  }
  const auto best = best_steps.find(step);
  json["best"] = best == best_steps.end() ? std::vector<std::string>() : best->second;
  const auto evaluation = data.evaluations.find(step);
  if (evaluation != data.evaluations.end()) {
    json["evaluated"] = evaluation->second.time;
    json["evaluation_seconds"] = evaluation->second.seconds;
    json["examples"] = evaluation->second.examples;
    json["metrics"] = evaluation->second.metrics;
  }
  const auto exported = data.exports.find(step);
  json["exported"] = exported == data.exports.end() ? std::set<std::string>() : exported->second;
  return json;
}

void AddStream(const Json& status, Json* json) {
  if (!status.is_object() || !status.contains("stream")) return;
  const Json& stream = status["stream"];
  const auto done = IntegerAt(stream, "done_records"), known = IntegerAt(stream, "known_records");
  if (!done.has_value() || !known.has_value()) return;
  const bool ended = stream.contains("ended") && stream["ended"] == true;
  (*json)["stream"] = {{"file", TextAt(stream, "file").value_or("")},
                       {"done_records", *done},
                       {"known_records", *known},
                       {"ended", ended}};
}

}  // namespace

Json RunEntryJson(const Run& run, const RunData& data) {
  return {{"id", run.id()},
          {"name", run.name()},
          {"model_dir", run.model_dir()},
          {"live", run.live()},
          {"state", data.state.state}};
}

Json RunJson(const Run& run, const RunData& data) {
  const Json& status = data.status;
  Json json = {{"run", run.id()},
               {"name", run.name()},
               {"model_dir", run.model_dir()},
               {"live", run.live()},
               {"state", data.state.state},
               {"state_text", data.state.text},
               {"end_reason", TextAt(status, "end_reason").value_or("")},
               {"step", IntegerAt(status, "step").value_or(NewestStep(data))}};
  std::string error = data.state.error;
  if (error.empty()) error = TextAt(status, "error").value_or("");
  if (error.empty() && !data.troubles.empty()) error = data.troubles.front();
  json["error"] = error;
  if (const auto time = NumberAt(status, "time")) json["updated"] = *time;
  if (const auto max_steps = IntegerAt(status, "max_steps")) json["max_steps"] = *max_steps;
  AddStream(status, &json);
  if (const auto mode = TextAt(status, "mode")) json["mode"] = *mode;
  CopyNumber(status, "started", &json);
  for (const char* const key : kValues) CopyValue(status, key, &json);
  if (!data.state.over() && !data.state.chief_away) {
    for (const char* const key : kRates) CopyValue(status, key, &json);
  }
  AddBest(data, &json);
  json["metrics"] = Json::array();
  for (const auto& [name, figure] : data.metrics) {
    json["metrics"].push_back(MetricJson(name, figure));
  }
  json["snapshot"] = SnapshotFiguresJson(data, run.clock()->Now());
  if (data.model.has_value()) json["task"] = TaskJson(run, *data.model);
  return json;
}

Json SnapshotsJson(const Run& run, const RunData& data) {
  std::set<int64_t> steps;
  for (const auto& entry : data.snapshots) steps.insert(entry.first);
  for (const auto& entry : data.evaluations) steps.insert(entry.first);
  const BestSteps best_steps = BestStepsOf(data);
  Json list = Json::array();
  size_t newer = 0;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step, ++newer) {
    const bool listed = newer < kListedSnapshots || Exists(data, *step) ||
                        best_steps.contains(*step) || data.exports.contains(*step);
    if (listed) list.push_back(SnapshotJson(data, best_steps, *step));
  }
  return {{"run", run.id()}, {"total", steps.size()}, {"snapshots", std::move(list)}};
}

Json PlacementJson(const Run& run, const RunData& data) {
  if (!data.placement.is_object()) return nullptr;
  Json json = data.placement;
  json["run"] = run.id();
  return json;
}

}  // namespace keelson
