// A worker's report of its work, and the rates that follow from two such reports.
#ifndef KEELSON_CHIEF_COORDINATION_WORKER_REPORT_H_
#define KEELSON_CHIEF_COORDINATION_WORKER_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "core/cluster/staleness_buckets.h"

namespace keelson {

// See WorkerProgress in chief_service.proto.
struct WorkerReport {
  struct LeaseProgress {
    uint64_t lease_id = 0;
    int64_t completed = 0;
  };
  struct StepLoss {
    int64_t step = 0;
    double loss = 0;
  };
  std::vector<LeaseProgress> leases;
  std::vector<StepLoss> losses;  // of each of the steps
  int64_t steps = 0;
  int64_t examples = 0;
  double loss_sum = 0;
  int64_t non_finite_losses = 0;
  int64_t staleness_sum = 0;
  int64_t staleness_max = 0;
  double pull_seconds = 0;
  double input_seconds = 0;
  double compute_seconds = 0;
  double push_seconds = 0;
  int64_t push_retries = 0;
  double credit_wait_seconds = 0;
  int64_t bytes_pushed = 0;
  int64_t bytes_pulled = 0;
  // All zero from a worker that does not count.
  StalenessCounts staleness_counts = {};

  // Adds the sums; the lists stay.
  void AddSums(const WorkerReport& other);
};

// Means and rates over an interval.
struct TrainingFigures {
  // Mean of the steps; not a number without steps.
  double loss = 0;
  double steps_per_second = 0;
  double examples_per_second = 0;
  double staleness = 0;
  // Payload of gradients and values.
  double pushed_bytes_per_second = 0;
  double pulled_bytes_per_second = 0;
  // How long a step's messages were held back because the servers granted no more credits.
  double credit_wait_seconds = 0;
  // Where the worker's loop spent a step's time.
  double input_seconds = 0;
  double pull_seconds = 0;
  double compute_seconds = 0;
  double push_seconds = 0;
};

// The figures of the work between two sums, `interval` (> 0) apart.
TrainingFigures FiguresBetween(const WorkerReport& older, const WorkerReport& newer,
                               absl::Duration interval);

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORKER_REPORT_H_
