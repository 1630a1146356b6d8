// What a worker exports; docs/metrics.md lists it.
#ifndef KEELSON_WORKER_WORKER_METRICS_H_
#define KEELSON_WORKER_WORKER_METRICS_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/cluster/staleness_buckets.h"
#include "core/metrics/metric_page.h"

namespace keelson {

struct FinishedStep;

// A worker's totals since its process began, in all of its memberships.
struct WorkerTotals {
  // The position in `staleness` at which a step counts.
  static size_t StalenessBucket(int64_t staleness);

  void Add(const FinishedStep& step);

  int64_t steps = 0;
  int64_t examples = 0;
  int64_t push_retries = 0;
  int64_t bytes_pushed = 0;
  int64_t bytes_pulled = 0;
  absl::Duration pull, input, compute, push, waited_for_credit;
  StalenessCounts staleness = {};
  int64_t staleness_sum = 0;
  // The loss of the newest step.
  double loss = 0;
  int64_t non_finite_losses = 0;
  // Tickets whose gradient came too late for the round (synchronous mode).
  int64_t dropped_tickets = 0;
  int64_t ended_memberships = 0;
};

// Adds keelson_worker_device_info.
void CollectWorkerDevice(absl::string_view device, MetricPage* page);

// Adds the other families keelson_worker_*.
void CollectWorkerMetrics(const WorkerTotals& totals, MetricPage* page);

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_METRICS_H_
