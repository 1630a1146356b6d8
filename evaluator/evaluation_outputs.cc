#include "evaluator/evaluation_outputs.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/scoring/direction.h"
#include "core/summary/event_handover.h"
#include "evaluator/report_file.h"

namespace keelson {
namespace {

constexpr char kDirectory[] = "eval";
constexpr char kLossMetric[] = "loss";

// Lists the loss first.
std::vector<std::pair<std::string, double>> Scalars(const EvaluationRecord& record) {
  std::vector<std::pair<std::string, double>> scalars(record.metrics.begin(), record.metrics.end());
  std::stable_partition(scalars.begin(), scalars.end(),
                        [](const auto& scalar) { return scalar.first == kLossMetric; });
  return scalars;
}

std::string Describe(const EvaluationRecord& record) {
  std::string text = absl::StrCat("step ", record.step, ":");
  for (const auto& [name, value] : Scalars(record)) absl::StrAppend(&text, " ", name, "=", value);
  absl::StrAppend(&text, " (", record.examples, " examples in ", record.seconds, " s)");
  return text;
}

// False also for a snapshot that cannot be read.
bool IsOf(const EvaluationRecord& record, const SnapshotInfo& snapshot, FileSystem* file_system) {
  const absl::StatusOr<uint64_t> id = ReadSnapshotId(snapshot.prefix, file_system);
  return id.ok() && *id == record.snapshot_id;
}

// The best step by each metric.
std::set<int64_t> BestSteps(const std::map<int64_t, EvaluationRecord>& records) {
  std::map<std::string, std::optional<BestValue>> best;
  for (const auto& [step, record] : records) {
    for (const auto& [name, value] : record.metrics) TakeIfBest(name, step, value, &best[name]);
  }
  std::set<int64_t> steps;
  for (const auto& [name, each] : best) {
    if (each.has_value()) steps.insert(each->step);
  }
  return steps;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EvaluationOutputs>> EvaluationOutputs::Open(
    Options options, const CheckpointDirectory* directory, const Clock* clock) {
  std::unique_ptr<EvaluationOutputs> outputs(
      new EvaluationOutputs(std::move(options), directory, clock));
  RETURN_IF_ERROR(outputs->OpenFiles());
  return outputs;
}

absl::Status EvaluationOutputs::OpenFiles() {
  const std::string path = JoinPath(directory_->model_dir(), kDirectory);
  const int index = options_.self.index;
  RETURN_IF_ERROR(options_.file_system->CreateDirectories(path));
  ASSIGN_OR_RETURN(records_, EvaluationRecords::Open(path, index, options_.file_system));
  if (index != 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(events_, EventWriter::Create(path, clock_, options_.file_system));
  exporters_ = std::make_unique<Exporters>(options_.config, options_.variables,
                                           options_.export_files, clock_);
  OfferScored(records());
  return absl::OkStatus();
}

absl::StatusOr<std::map<int64_t, EvaluationRecord>> EvaluationOutputs::TakeOthers() {
  ASSIGN_OR_RETURN(auto others, records_->Refresh());
  if (options_.self.index != 0) return others;
  for (const auto& [step, record] : others) {
    LogInfo("scored by another evaluator: ", Describe(record));
    RETURN_IF_ERROR(WriteScalars(record));
  }
  OfferScored(others);
  const absl::Status taken = TakeEvents(HistogramsPath(), options_.file_system, events_.get());
  if (!taken.ok()) LogWarning("histograms of other evaluators: ", taken.message());
  return others;
}

absl::Status EvaluationOutputs::ForgetAfter(int64_t step) {
  if (exporters_ != nullptr) exporters_->ForgetAfter(step);
  return records_->ForgetAfter(step);
}

absl::Status EvaluationOutputs::Publish(const SnapshotInfo& snapshot, const ScoredSnapshot& scored,
                                        const WeightHistograms& histograms) {
  const EvaluationRecord& record = scored.record;
  // The report is written before the line for which readers wait.
  WriteReportOf(scored);
  RETURN_IF_ERROR(WriteScalars(record));
  RETURN_IF_ERROR(records_->Add(record));
  LogInfo(Describe(record));
  WriteWeights(record.step, histograms);
  if (exporters_ != nullptr) exporters_->Offer(snapshot, record);
  return absl::OkStatus();
}

void EvaluationOutputs::TakeFinal(int64_t step) {
  if (final_taken_ || exporters_ == nullptr || !exporters_->TakesFinal()) return;
  final_taken_ = true;
  const EvaluationRecord* record = Find(step);
  const std::optional<SnapshotInfo> snapshot = FindSnapshot(step);
  if (record == nullptr || !snapshot.has_value() ||
      !IsOf(*record, *snapshot, options_.file_system)) {
    LogWarning("the final snapshot, of step ", step, ", is not exported: it is not there");
    return;
  }
  exporters_->OfferFinal(*snapshot, *record);
}

std::string EvaluationOutputs::HistogramsPath() const {
  return JoinPath(JoinPath(directory_->model_dir(), kDirectory), "histograms");
}

absl::Status EvaluationOutputs::WriteScalars(const EvaluationRecord& record) {
  if (events_ == nullptr) return absl::OkStatus();  // The first evaluator does it.
  RETURN_IF_ERROR(events_->AddScalars(record.step, Scalars(record)));
  return events_->Flush();
}

void EvaluationOutputs::WriteWeights(int64_t step, const WeightHistograms& histograms) {
  if (histograms.empty()) return;
  const absl::Status status =
      events_ == nullptr
          ? HandOverEvent(HistogramEvent(step, histograms), HistogramsPath(), options_.file_system)
          : events_->AddHistograms(step, histograms);
  if (!status.ok()) LogWarning("histograms of the weights: ", status.message());
}

void EvaluationOutputs::WriteReportOf(const ScoredSnapshot& scored) {
  const absl::Status status =
      WriteReport(directory_->model_dir(), scored.record.step, scored.report, BestSteps(records()),
                  options_.file_system);
  if (!status.ok()) LogWarning("the report of step ", scored.record.step, ": ", status.message());
}

void EvaluationOutputs::OfferScored(const std::map<int64_t, EvaluationRecord>& records) {
  if (!exporters_->TakesAny() || records.empty()) return;
  const absl::StatusOr<std::vector<SnapshotInfo>> snapshots = directory_->List();
  if (!snapshots.ok()) {
    LogWarning("no exports: ", snapshots.status().message());
    return;
  }
  for (const SnapshotInfo& snapshot : *snapshots) {
    const auto record = records.find(snapshot.step);
    if (record == records.end() || !IsOf(record->second, snapshot, options_.file_system)) continue;
    // The lease lasts until the export is written; it needs a writable model directory.
    const auto lease = SnapshotLease::Take(options_.lease_files, snapshot.prefix,
                                           options_.self.ToString(), clock_);
    exporters_->Offer(snapshot, record->second);
  }
}

std::optional<SnapshotInfo> EvaluationOutputs::FindSnapshot(int64_t step) const {
  const absl::StatusOr<std::vector<SnapshotInfo>> snapshots = directory_->List();
  if (!snapshots.ok()) return std::nullopt;
  for (const SnapshotInfo& snapshot : *snapshots) {
    if (snapshot.step == step) return snapshot;
  }
  return std::nullopt;
}

}  // namespace keelson
