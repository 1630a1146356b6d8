#include "ps_server/service/server_metrics.h"

#include <utility>

namespace keelson {
namespace {

void AddCounter(absl::string_view name, absl::string_view help, int64_t value, MetricPage* page) {
  page->Counter(name, help).Add(static_cast<double>(value));
}

void AddGauge(absl::string_view name, absl::string_view help, int64_t value, MetricPage* page) {
  page->Gauge(name, help).Add(static_cast<double>(value));
}

void CollectCalls(const ServerFigures& figures, MetricPage* page) {
  AddCounter("keelson_ps_pulls_total", "Pulls that were answered.", figures.pulls, page);
  AddCounter("keelson_ps_pushes_total", "Pushes that were applied, or added to a round.",
             figures.pushes, page);
  AddCounter("keelson_ps_committed_rounds_total", "Synchronous steps that were applied.",
             figures.committed_rounds, page);
  AddCounter("keelson_ps_pushed_bytes_total", "Gradients received.", figures.pushed_bytes, page);
  AddCounter("keelson_ps_pulled_bytes_total", "Values sent.", figures.pulled_bytes, page);
  AddCounter("keelson_ps_repeated_pushes_total",
             "Messages that had been applied before: sent again, for the answer was lost.",
             figures.repeated_pushes, page);
  AddCounter("keelson_ps_duplicate_blocks_total", "Blocks of them that were not applied again.",
             figures.duplicate_blocks, page);
  AddCounter("keelson_ps_refused_calls_total", "Calls refused: their membership is over.",
             figures.refused_calls, page);
  AddCounter("keelson_ps_outdated_pushes_total", "Pushes refused: their round is over.",
             figures.outdated_pushes, page);
  AddGauge("keelson_ps_calls_in_progress", "Bulk calls that are being executed.",
           figures.calls_in_progress, page);
}

void CollectSnapshots(const ServerFigures& figures, MetricPage* page) {
  AddCounter("keelson_ps_snapshots_total", "Parts of snapshots that were written.",
             figures.snapshots, page);
  AddCounter("keelson_ps_snapshot_failures_total", "Parts of snapshots that failed.",
             figures.failed_snapshots, page);
  AddCounter("keelson_ps_snapshot_bytes_total", "Bytes of these parts.", figures.snapshot_bytes,
             page);
  page->Counter("keelson_ps_snapshot_seconds_total", "Time to write them.")
      .Add(absl::ToDoubleSeconds(figures.snapshot_time));
  page->Counter("keelson_ps_snapshot_cut_seconds_total",
                "Time for which pushes waited for their cuts.")
      .Add(absl::ToDoubleSeconds(figures.cut_time));
  page->Gauge("keelson_ps_snapshot_longest_cut_seconds", "The longest of these waits.")
      .Add(absl::ToDoubleSeconds(figures.longest_cut));
}

void CollectStaleness(const ServerFigures& figures, MetricPage* page) {
  MetricFamily& family = page->Histogram(
      "keelson_ps_staleness", "Pushes applied between a gradient's values and the gradient.");
  for (const StalenessHistogram& histogram : figures.staleness) {
    HistogramCounts counts;
    counts.bounds.assign(StalenessHistogram::kBounds.begin(), StalenessHistogram::kBounds.end());
    counts.counts.assign(histogram.counts.begin(), histogram.counts.end());
    counts.sum = static_cast<double>(histogram.sum);
    family.Add(std::move(counts), {{"task", histogram.task.ToString()}});
  }
}

void CollectTables(const v1::ShardStatus& shard, MetricPage* page) {
  if (shard.tables().empty()) return;
  using Figure = int64_t (v1::TablePartStatus::*)() const;
  const auto add = [&](MetricFamily& family, Figure figure) {
    for (const v1::TablePartStatus& table : shard.tables()) {
      family.Add(static_cast<double>((table.*figure)()), {{"table", table.name()}});
    }
  };
  add(page->Gauge("keelson_ps_table_rows", "Rows of a table in the shard."),
      &v1::TablePartStatus::rows);
  add(page->Gauge("keelson_ps_table_bytes",
                  "Their memory: values, slots, the index and what cuts keep."),
      &v1::TablePartStatus::bytes);
  add(page->Counter("keelson_ps_table_refused_rows_total",
                    "Updates left out as there was no memory for a new row."),
      &v1::TablePartStatus::refused_rows);
  add(page->Counter("keelson_ps_table_expired_rows_total",
                    "Rows erased as no push had them for long."),
      &v1::TablePartStatus::expired_rows);
  add(page->Gauge("keelson_ps_table_ghosts", "Ids that were counted, but have no row yet."),
      &v1::TablePartStatus::ghosts);
  add(page->Counter("keelson_ps_table_admitted_rows_total", "Rows made for ids that were counted."),
      &v1::TablePartStatus::admitted_rows);
  add(page->Counter("keelson_ps_table_evicted_rows_total", "Rows erased to make place for others."),
      &v1::TablePartStatus::evicted_rows);
  add(page->Counter("keelson_ps_table_looked_up_total", "Ids looked up, once in a message."),
      &v1::TablePartStatus::looked_up);
  add(page->Counter("keelson_ps_table_looked_up_absent_total", "Of these, ids without a row."),
      &v1::TablePartStatus::looked_up_absent);
}

void CollectShard(const v1::ShardStatus& shard, MetricPage* page) {
  const bool ready = shard.state() == v1::ShardStatus::READY;
  AddGauge("keelson_ps_shard_ready", "1: the server holds its shard.", ready ? 1 : 0, page);
  AddGauge("keelson_ps_clients", "Memberships with a bulk call in the last 10 seconds.",
           shard.active_clients(), page);
  AddGauge("keelson_ps_credits", "Messages that each of them may have in flight.", shard.credits(),
           page);
  AddGauge("keelson_ps_members", "Members whose pushes are taken.", shard.members(), page);
  if (!ready) return;
  AddGauge("keelson_ps_shard_step", "Pushes and rounds in the values.", shard.shard_step(), page);
  AddGauge("keelson_ps_value_bytes", "Values of the shard.", shard.value_bytes(), page);
  AddGauge("keelson_ps_slot_bytes", "The optimizer's slots.", shard.slot_bytes(), page);
  CollectTables(shard, page);
}

}  // namespace

void CollectServerMetrics(const v1::ShardStatus& shard, const ServerFigures& figures,
                          MetricPage* page) {
  CollectShard(shard, page);
  CollectCalls(figures, page);
  CollectSnapshots(figures, page);
  CollectStaleness(figures, page);
}

MetricRegistry::Registration AddServerMetrics(MetricRegistry* registry, ParameterHandler* handler) {
  return registry->Add([handler](MetricPage* page) {
    v1::ShardStatus shard;
    // GetStatus is allowed to every caller at any time.
    handler->GetStatus(v1::GetShardStatusRequest(), &shard).IgnoreError();
    CollectServerMetrics(shard, handler->figures(), page);
  });
}

}  // namespace keelson
