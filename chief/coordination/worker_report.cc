#include "chief/coordination/worker_report.h"

#include <algorithm>
#include <cmath>

namespace keelson {

void WorkerReport::AddSums(const WorkerReport& other) {
  steps += other.steps;
  examples += other.examples;
  loss_sum += other.loss_sum;
  non_finite_losses += other.non_finite_losses;
  staleness_sum += other.staleness_sum;
  staleness_max = std::max(staleness_max, other.staleness_max);
  pull_seconds += other.pull_seconds;
  input_seconds += other.input_seconds;
  compute_seconds += other.compute_seconds;
  push_seconds += other.push_seconds;
  push_retries += other.push_retries;
  credit_wait_seconds += other.credit_wait_seconds;
  bytes_pushed += other.bytes_pushed;
  bytes_pulled += other.bytes_pulled;
  for (size_t i = 0; i < staleness_counts.size(); ++i) {
    staleness_counts[i] += other.staleness_counts[i];
  }
}

TrainingFigures FiguresBetween(const WorkerReport& older, const WorkerReport& newer,
                               absl::Duration interval) {
  const double seconds = absl::ToDoubleSeconds(interval);
  const auto steps = static_cast<double>(newer.steps - older.steps);
  const auto mean = [&](double sum) { return steps == 0 ? std::nan("") : sum / steps; };
  TrainingFigures figures;
  figures.loss = mean(newer.loss_sum - older.loss_sum);
  figures.steps_per_second = steps / seconds;
  figures.examples_per_second = static_cast<double>(newer.examples - older.examples) / seconds;
  figures.staleness = mean(static_cast<double>(newer.staleness_sum - older.staleness_sum));
  figures.credit_wait_seconds = mean(newer.credit_wait_seconds - older.credit_wait_seconds);
  figures.input_seconds = mean(newer.input_seconds - older.input_seconds);
  figures.pull_seconds = mean(newer.pull_seconds - older.pull_seconds);
  figures.compute_seconds = mean(newer.compute_seconds - older.compute_seconds);
  figures.push_seconds = mean(newer.push_seconds - older.push_seconds);
  figures.pushed_bytes_per_second =
      static_cast<double>(newer.bytes_pushed - older.bytes_pushed) / seconds;
  figures.pulled_bytes_per_second =
      static_cast<double>(newer.bytes_pulled - older.bytes_pulled) / seconds;
  return figures;
}

}  // namespace keelson
