#include "worker/worker_metrics.h"

#include <string>
#include <utility>

#include "core/cluster/staleness_buckets.h"
#include "core/startup/figure_metrics.h"

namespace keelson {
namespace {

void CollectStaleness(const v1::WorkerFigures& figures, MetricPage* page) {
  HistogramCounts counts;
  counts.bounds.assign(kStalenessBounds.begin(), kStalenessBounds.end());
  counts.counts.assign(figures.staleness_counts().begin(), figures.staleness_counts().end());
  counts.counts.resize(StalenessCounts().size());
  counts.sum = static_cast<double>(figures.staleness_sum());
  page->Histogram(
          "keelson_worker_staleness",
          "Pushes applied between a step's values and its gradient; largest over the shards.")
      .Add(std::move(counts));
}

}  // namespace

void CollectWorkerDevice(absl::string_view device, MetricPage* page) {
  page->Gauge("keelson_worker_device_info", "Always 1; what the worker computes on.")
      .Add(1, {{"device", std::string(device)}});
}

void CollectWorkerMetrics(const WorkerTotals& totals, MetricPage* page) {
  CollectWorkerFigures(totals.figures, page);
  CollectStaleness(totals.figures, page);
  page->Counter("keelson_worker_dropped_tickets_total",
                "Tickets whose gradient was not wanted any more (synchronous mode).")
      .Add(static_cast<double>(totals.dropped_tickets));
  page->Counter("keelson_worker_ended_memberships_total",
                "Memberships that were over before the job was; the worker joined anew.")
      .Add(static_cast<double>(totals.ended_memberships));
  if (totals.loss.has_value()) {
    page->Gauge("keelson_worker_loss", "Loss of the newest step.").Add(*totals.loss);
  }
}

}  // namespace keelson
