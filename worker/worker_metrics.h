// What a worker exports; docs/metrics.md lists it.
#ifndef KEELSON_WORKER_WORKER_METRICS_H_
#define KEELSON_WORKER_WORKER_METRICS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/metrics/metric_page.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// A worker's totals since its process began, in all of its memberships.
struct WorkerTotals {
  v1::WorkerFigures figures;
  // The loss of the newest step that had one.
  std::optional<double> loss;
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
