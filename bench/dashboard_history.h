// Writes a model directory like that of a long job, to measure the dashboard.
#ifndef KEELSON_BENCH_DASHBOARD_HISTORY_H_
#define KEELSON_BENCH_DASHBOARD_HISTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace keelson::bench {

// The history of a job that still runs: one chief, the rest servers, workers and an evaluator.
struct DashboardHistory {
  double hours = 24;
  int servers = 4;
  int workers = 14;
  // The points of each of the curves train/loss, train/learning_rate and train/global_step/sec,
  // spread over the hours.
  int64_t points = 1'000'000;
  // Evaluations, spread over the hours; the newest five have snapshots, the newest twenty reports.
  int64_t evaluations = 288;

  int tasks() const { return 2 + servers + workers; }
};

// Writes status.json, placement.json, train_config.textproto, event files of the training and of
// the tasks, evaluations, reports and snapshots into `model_dir`, the newest of `now`. Errors of
// file_system.h.
absl::Status WriteDashboardHistory(const DashboardHistory& history, const std::string& model_dir,
                                   absl::Time now);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_DASHBOARD_HISTORY_H_
