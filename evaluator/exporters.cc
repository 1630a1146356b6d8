#include "evaluator/exporters.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/scoring/direction.h"

namespace keelson {
namespace {

ExportDirectory DirectoryFor(const v1::TrainConfig& config, absl::string_view kind,
                             FileSystem* file_system, const Clock* clock) {
  return ExportDirectory(
      file_system, JoinPath(JoinPath(config.checkpoint().model_dir(), "export"), kind), clock);
}

double ValueOf(const std::map<std::string, double>& metrics, const std::string& name) {
  const auto metric = metrics.find(name);
  return metric == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : metric->second;
}

void LogFailure(const SnapshotInfo& snapshot, const absl::Status& status) {
  if (status.ok()) return;
  LogWarning("exporting the snapshot of step ", snapshot.step, ": ", status.message());
}

}  // namespace

Exporters::Exporters(const v1::TrainConfig& config, std::vector<VariableSpec> variables,
                     FileSystem* file_system, const Clock* clock)
    : config_(config),
      variables_(std::move(variables)),
      file_system_(file_system),
      final_(DirectoryFor(config, "final", file_system, clock)),
      latest_(DirectoryFor(config, "latest", file_system, clock)),
      best_(DirectoryFor(config, "best", file_system, clock)) {
  for (const v1::EvaluationConfig::Exporter& exporter : config.evaluation().exporters()) {
    if (exporter.has_final_snapshot()) takes_final_ = true;
    if (exporter.has_latest()) latest_keep_ = exporter.latest().keep();
    if (exporter.has_best()) {
      best_keep_ = exporter.best().keep();
      best_metric_ = exporter.best().metric();
    }
  }
  for (ExportDirectory* directory : {&final_, &latest_, &best_}) {
    const absl::Status status = directory->RemoveHalfWritten();
    if (!status.ok()) LogWarning("a half-written export stays: ", status.message());
  }
}

void Exporters::Offer(const SnapshotInfo& snapshot, const EvaluationRecord& record) {
  if (latest_keep_ > 0) LogFailure(snapshot, ExportLatest(snapshot, record));
  if (best_keep_ > 0) LogFailure(snapshot, ExportBest(snapshot, record));
}

void Exporters::OfferFinal(const SnapshotInfo& snapshot, const EvaluationRecord& record) {
  if (takes_final_) LogFailure(snapshot, ExportFinal(snapshot, record));
}

void Exporters::ForgetAfter(int64_t step) {
  const absl::StatusOr<Exports> exports = latest_.List();
  absl::Status status = exports.status();
  if (exports.ok()) {
    for (const auto& [exported, each] : *exports) {
      if (exported > step) status.Update(latest_.Remove(exported));
    }
  }
  if (!status.ok()) LogWarning("exports of steps that are to be done again: ", status.message());
}

absl::StatusOr<Exporters::Exports> Exporters::ListFor(const EvaluationRecord& record,
                                                      ExportDirectory* directory) {
  ASSIGN_OR_RETURN(Exports exports, directory->List());
  const auto same_step = exports.find(record.step);
  if (same_step != exports.end() && same_step->second.snapshot_id != record.snapshot_id) {
    RETURN_IF_ERROR(directory->Remove(record.step));
    exports.erase(same_step);
  }
  return exports;
}

absl::Status Exporters::ExportFinal(const SnapshotInfo& snapshot, const EvaluationRecord& record) {
  RETURN_IF_ERROR(ListFor(record, &final_).status());
  return Export(&final_, snapshot, record);
}

absl::Status Exporters::ExportLatest(const SnapshotInfo& snapshot, const EvaluationRecord& record) {
  ASSIGN_OR_RETURN(Exports exports, ListFor(record, &latest_));
  const bool newer = exports.size() < latest_keep_ || record.step > exports.begin()->first;
  if (newer && exports.count(record.step) == 0) {
    RETURN_IF_ERROR(Export(&latest_, snapshot, record));
    exports[record.step] = ModelExport();
  }
  // Removes also exports that an earlier call could not remove.
  while (exports.size() > latest_keep_) {
    RETURN_IF_ERROR(latest_.Remove(exports.begin()->first));
    exports.erase(exports.begin());
  }
  return absl::OkStatus();
}

absl::Status Exporters::ExportBest(const SnapshotInfo& snapshot, const EvaluationRecord& record) {
  ASSIGN_OR_RETURN(Exports exports, ListFor(record, &best_));
  if (exports.count(record.step) == 0 && AmongBest(exports, record)) {
    RETURN_IF_ERROR(Export(&best_, snapshot, record));
    exports[record.step].metrics = record.metrics;
  }
  while (exports.size() > best_keep_) {
    const int64_t worst = WorstStep(exports);
    RETURN_IF_ERROR(best_.Remove(worst));
    exports.erase(worst);
  }
  return absl::OkStatus();
}

bool Exporters::AmongBest(const Exports& exports, const EvaluationRecord& record) const {
  const double value = ValueOf(record.metrics, best_metric_);
  if (!std::isfinite(value)) return false;
  if (exports.size() < best_keep_) return true;
  return Better(value, ValueOf(exports.at(WorstStep(exports)).metrics, best_metric_));
}

absl::Status Exporters::Export(ExportDirectory* directory, const SnapshotInfo& snapshot,
                               const EvaluationRecord& record) {
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(directory->PathOf(record.step)));
  if (exists) return absl::OkStatus();
  RETURN_IF_ERROR(directory->Write(snapshot, variables_, config_, record));
  LogInfo("exported ", directory->PathOf(record.step));
  return absl::OkStatus();
}

int64_t Exporters::WorstStep(const Exports& exports) const {
  auto worst = exports.begin();
  for (auto each = exports.begin(); each != exports.end(); ++each) {
    const double value = ValueOf(each->second.metrics, best_metric_);
    // The newest of equal ones is the worst: a later one has to be better.
    if (!Better(value, ValueOf(worst->second.metrics, best_metric_))) worst = each;
  }
  return worst->first;
}

bool Exporters::Better(double a, double b) const { return IsBetter(best_metric_, a, b); }

}  // namespace keelson
