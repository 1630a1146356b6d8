#include "worker/worker_metrics.h"

#include <algorithm>
#include <string>

#include "worker/progress.h"

namespace keelson {
namespace {

void CollectSeconds(const WorkerTotals& totals, MetricPage* page) {
  MetricFamily& seconds = page->Counter("keelson_worker_step_seconds_total",
                                        "Time of the training loop, by what it waited for.");
  seconds.Add(absl::ToDoubleSeconds(totals.pull), {{"kind", "pull"}});
  seconds.Add(absl::ToDoubleSeconds(totals.input), {{"kind", "input"}});
  seconds.Add(absl::ToDoubleSeconds(totals.compute), {{"kind", "compute"}});
  seconds.Add(absl::ToDoubleSeconds(totals.push), {{"kind", "push"}});
  page->Counter("keelson_worker_credit_wait_seconds_total",
                "Time for which messages were held back because servers allowed no more in flight.")
      .Add(absl::ToDoubleSeconds(totals.waited_for_credit));
}

void CollectStaleness(const WorkerTotals& totals, MetricPage* page) {
  HistogramCounts counts;
  counts.bounds.assign(kStalenessBounds.begin(), kStalenessBounds.end());
  counts.counts.assign(totals.staleness.begin(), totals.staleness.end());
  counts.sum = static_cast<double>(totals.staleness_sum);
  page->Histogram(
          "keelson_worker_staleness",
          "Pushes applied between a step's values and its gradient; largest over the shards.")
      .Add(std::move(counts));
}

}  // namespace

size_t WorkerTotals::StalenessBucket(int64_t staleness) {
  const auto bucket = std::lower_bound(kStalenessBounds.begin(), kStalenessBounds.end(), staleness);
  return static_cast<size_t>(bucket - kStalenessBounds.begin());
}

void WorkerTotals::Add(const FinishedStep& step) {
  ++steps;
  examples += step.ticket.end - step.ticket.begin;
  push_retries += step.push_retries;
  bytes_pushed += step.bytes_pushed;
  bytes_pulled += step.bytes_pulled;
  pull += step.pull;
  input += step.input;
  compute += step.compute;
  push += step.push;
  waited_for_credit += step.waited_for_credit;
  ++staleness[StalenessBucket(step.staleness)];
  staleness_sum += step.staleness;
  loss = step.loss;
}

void CollectWorkerDevice(absl::string_view device, MetricPage* page) {
  page->Gauge("keelson_worker_device_info", "Always 1; what the worker computes on.")
      .Add(1, {{"device", std::string(device)}});
}

void CollectWorkerMetrics(const WorkerTotals& totals, MetricPage* page) {
  const auto counter = [page](absl::string_view name, absl::string_view help, int64_t value) {
    page->Counter(name, help).Add(static_cast<double>(value));
  };
  counter("keelson_worker_steps_total", "Steps that the servers have acknowledged.", totals.steps);
  counter("keelson_worker_examples_total", "Records of these steps.", totals.examples);
  counter("keelson_worker_push_retries_total", "Calls to servers that had to be repeated.",
          totals.push_retries);
  counter("keelson_worker_pushed_bytes_total", "Requests with gradients.", totals.bytes_pushed);
  counter("keelson_worker_pulled_bytes_total", "Answers with values.", totals.bytes_pulled);
  counter("keelson_worker_non_finite_losses_total", "Steps not pushed: their loss is not finite.",
          totals.non_finite_losses);
  counter("keelson_worker_dropped_tickets_total",
          "Tickets whose gradient was not wanted any more (synchronous mode).",
          totals.dropped_tickets);
  counter("keelson_worker_ended_memberships_total",
          "Memberships that were over before the job was; the worker joined anew.",
          totals.ended_memberships);
  CollectSeconds(totals, page);
  CollectStaleness(totals, page);
  if (totals.steps > 0) {
    page->Gauge("keelson_worker_loss", "Loss of the newest step.").Add(totals.loss);
  }
}

}  // namespace keelson
