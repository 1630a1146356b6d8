#include "evaluator/evaluator_metrics.h"

#include "absl/time/time.h"

namespace keelson {
namespace {

void CollectEvaluation(const EvaluationRecord& record, MetricPage* page) {
  page->Gauge("keelson_evaluator_evaluated_step", "Step of the newest snapshot that was scored.")
      .Add(static_cast<double>(record.step));
  page->Gauge("keelson_evaluator_evaluation_timestamp_seconds",
              "When it was scored, since the epoch.")
      .Add(static_cast<double>(absl::ToUnixMicros(record.wall_time)) / 1e6);
  page->Gauge("keelson_evaluator_evaluation_seconds", "How long that took.").Add(record.seconds);
  MetricFamily& scores = page->Gauge("keelson_evaluator_evaluation", "Its scores.");
  for (const auto& [name, value] : record.metrics) scores.Add(value, {{"metric", name}});
}

}  // namespace

void EvaluatorMetrics::SetDevice(const std::string& device) {
  MutexLock lock(&mu_);
  device_ = device;
}

void EvaluatorMetrics::Add(const EvaluationRecord& record, bool scored_here) {
  MutexLock lock(&mu_);
  if (!newest_.has_value() || record.step >= newest_->step) newest_ = record;
  if (!scored_here) return;
  ++evaluations_;
  examples_ += record.examples;
  seconds_ += record.seconds;
}

void EvaluatorMetrics::Collect(MetricPage* page) const {
  MutexLock lock(&mu_);
  if (!device_.empty()) {
    page->Gauge("keelson_evaluator_device_info", "Always 1; what the evaluator computes on.")
        .Add(1, {{"device", device_}});
  }
  page->Counter("keelson_evaluator_evaluations_total", "Snapshots that this process has scored.")
      .Add(static_cast<double>(evaluations_));
  page->Counter("keelson_evaluator_examples_total", "Records that they were scored on.")
      .Add(static_cast<double>(examples_));
  page->Counter("keelson_evaluator_evaluation_seconds_total", "Time that they took.").Add(seconds_);
  if (newest_.has_value()) CollectEvaluation(*newest_, page);
}

}  // namespace keelson
