#include "dashboard/runs/run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/checkpoint/done_marker.h"
#include "dashboard/runs/file_shapes.h"

namespace keelson {
namespace {

constexpr uint64_t kMaxStatusBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxPlacementBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;
// The amount read at a time, which takes some tenths of a second.
constexpr size_t kChunkBytes = size_t{8} << 20;
constexpr size_t kMaxSeries = 4096;
constexpr size_t kMaxTagBytes = 200;

absl::Status NotAnObject(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, ": expected an object of JSON"));
}

// The object in a file, or null; `trouble` has the reason, unless the file is missing.
Json ObjectOf(const std::string& path, const absl::StatusOr<std::string>& content,
              absl::Status* trouble) {
  *trouble = absl::IsNotFound(content.status()) ? absl::OkStatus() : content.status();
  if (!content.ok()) return nullptr;
  std::optional<Json> json = ParseJson(*content);
  if (json.has_value() && json->is_object()) return *std::move(json);
  *trouble = NotAnObject(path);
  return nullptr;
}

}  // namespace

Run::Run(Options options)
    : options_(std::move(options)),
      status_file_(options_.file_system, JoinPath(options_.model_dir, "status.json"),
                   kMaxStatusBytes),
      placement_file_(options_.file_system, JoinPath(options_.model_dir, "placement.json"),
                      kMaxPlacementBytes),
      model_file_(options_.file_system, RunConfigPath(options_.model_dir), kMaxConfigBytes),
      status_age_(options_.clock),
      snapshot_table_(options_.file_system, options_.model_dir, options_.clock),
      train_events_(options_.file_system, options_.model_dir),
      task_events_(options_.file_system, JoinPath(options_.model_dir, "tasks")),
      evaluation_tail_(options_.file_system, JoinPath(options_.model_dir, "eval/metrics.jsonl")) {}

void Run::Read(absl::FunctionRef<void(const RunData&)> look) const {
  ReaderMutexLock lock(&mu_);
  look(data_);
}

bool Run::Poll() {
  PollModel();
  PollStatus();
  PollPlacement();
  PollSnapshots();
  const bool more = PollCurves();
  PollState();
  NoteTroubles();
  return more;
}

void Run::PollStatus() {
  const auto content = status_file_.Poll();
  if (!content.has_value()) return;
  Json status = ObjectOf(status_file_.path(), *content, &status_trouble_);
  if (status.is_object()) status_age_.Note(status);
  WriterMutexLock lock(&mu_);
  // The last status is kept.
  if (status.is_null() && !data_.status.is_null()) return;
  data_.status = std::move(status);
  ++data_.status_revision;
}

void Run::PollPlacement() {
  const auto content = placement_file_.Poll();
  if (!content.has_value()) return;
  Json placement = ObjectOf(placement_file_.path(), *content, &placement_trouble_);
  if (placement.is_object()) {
    const absl::Status shape = CheckPlacementShape(placement);
    if (!shape.ok()) {
      placement_trouble_ =
          absl::DataLossError(absl::StrCat(placement_file_.path(), ": ", shape.message()));
      placement = nullptr;
    }
  }
  WriterMutexLock lock(&mu_);
  data_.placement = std::move(placement);
  data_.placement_trouble = std::string(placement_trouble_.message());
}

void Run::PollModel() {
  const auto content = model_file_.Poll();
  if (!content.has_value()) return;
  absl::StatusOr<std::string> text = *content;
  std::string source = model_file_.path();
  if (absl::IsNotFound(text.status()) && !options_.config_text.empty()) {
    text = options_.config_text;
    source = "--config";
  }
  std::optional<RunModel> model;
  model_trouble_ = absl::IsNotFound(text.status()) ? absl::OkStatus() : text.status();
  if (text.ok()) {
    absl::StatusOr<RunModel> parsed = ParseRunModel(*text, source);
    model_trouble_ = parsed.status();
    if (parsed.ok()) model = *std::move(parsed);
  }
  WriterMutexLock lock(&mu_);
  data_.model = std::move(model);
  ++data_.status_revision;
}

void Run::PollSnapshots() {
  if (!snapshot_table_.Poll()) return;
  WriterMutexLock lock(&mu_);
  data_.snapshots = snapshot_table_.snapshots();
  data_.exports = snapshot_table_.exports();
  data_.reports = snapshot_table_.reports();
  ++data_.snapshots_revision;
  ++data_.status_revision;
}

void Run::PollState() {
  // A marker that cannot be read exists, too.
  const auto marker = ReadDoneMarker(options_.model_dir, options_.file_system);
  const bool done = !marker.ok() ? absl::IsDataLoss(marker.status()) : marker->has_value();
  const absl::Duration age = status_age_.Get();
  WriterMutexLock lock(&mu_);
  RunState state = DeriveRunState(data_.status, age, done);
  if (state == data_.state) return;
  data_.state = std::move(state);
  ++data_.status_revision;
}

bool Run::PollCurves() {
  NewPoints points;
  const auto taker = [&](absl::string_view prefix) {
    return [&points, prefix](absl::string_view tag, const SeriesPoint& point) {
      if (tag.empty() || tag.size() > kMaxTagBytes) return;
      points[absl::StrCat(prefix, tag)].push_back(point);
    };
  };
  bool more = train_events_.Poll(kChunkBytes, taker("train/"));
  more = task_events_.Poll(kChunkBytes, taker("task/")) || more;
  std::vector<Evaluation> evaluations;
  more = evaluation_tail_.Poll(kChunkBytes, &evaluations) || more;
  for (const Evaluation& evaluation : evaluations) {
    for (const auto& [name, value] : evaluation.metrics) {
      points[absl::StrCat("eval/", name)].push_back({evaluation.step, evaluation.time, value});
    }
  }
  if (!points.empty() || !evaluations.empty()) Apply(points, std::move(evaluations));
  return more;
}

void Run::Apply(const NewPoints& points, std::vector<Evaluation> evaluations) {
  WriterMutexLock lock(&mu_);
  const uint64_t revision = ++data_.series_revision;
  for (const auto& [name, new_points] : points) {
    if (data_.series.size() >= kMaxSeries && !data_.series.contains(name)) {
      too_many_series_ = true;
      continue;
    }
    TimeSeries& series = data_.series[name];
    for (const SeriesPoint& point : new_points) series.Add(point);
    series.Commit(revision);
  }
  if (evaluations.empty()) return;
  bool in_order = true;
  for (Evaluation& evaluation : evaluations) {
    const bool last =
        data_.evaluations.empty() || data_.evaluations.rbegin()->first < evaluation.step;
    Evaluation& known = data_.evaluations[evaluation.step];
    if (evaluation.time >= known.time) known = std::move(evaluation);
    if (last) TakeMetrics(known, &data_.metrics);
    in_order = in_order && last;
  }
  if (!in_order) {
    data_.metrics.clear();
    for (const auto& entry : data_.evaluations) TakeMetrics(entry.second, &data_.metrics);
  }
  ++data_.snapshots_revision;
  ++data_.status_revision;
}

void Run::NoteTroubles() {
  std::vector<std::string> troubles;
  for (const absl::Status& status :
       {status_trouble_, model_trouble_, snapshot_table_.trouble(), evaluation_tail_.trouble(),
        train_events_.trouble(), task_events_.trouble(), placement_trouble_}) {
    if (!status.ok()) troubles.emplace_back(status.message());
  }
  if (too_many_series_) {
    troubles.push_back(absl::StrCat(options_.model_dir, ": more than ", kMaxSeries,
                                    " curves, the others are left out"));
  }
  WriterMutexLock lock(&mu_);
  if (troubles == data_.troubles) return;
  data_.troubles = std::move(troubles);
  ++data_.status_revision;
}

}  // namespace keelson
