#include "ps_server/service/server_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

// Adds samples of one shard, with its labels.
class ShardPage {
 public:
  ShardPage(const MetricLabels& labels, MetricPage* page) : labels_(labels), page_(page) {}

  void Counter(absl::string_view name, absl::string_view help, double value,
               const MetricLabels& more = {}) {
    page_->Counter(name, help).Add(value, With(more));
  }
  void Gauge(absl::string_view name, absl::string_view help, double value,
             const MetricLabels& more = {}) {
    page_->Gauge(name, help).Add(value, With(more));
  }
  void Histogram(absl::string_view name, absl::string_view help, HistogramCounts counts,
                 const MetricLabels& more) {
    page_->Histogram(name, help).Add(std::move(counts), With(more));
  }

 private:
  MetricLabels With(const MetricLabels& more) const {
    MetricLabels labels = labels_;
    labels.insert(labels.end(), more.begin(), more.end());
    return labels;
  }

  const MetricLabels& labels_;
  MetricPage* const page_;
};

void CollectCalls(const ServerFigures& figures, ShardPage* page) {
  page->Counter("keelson_ps_pulls_total", "Pulls that were answered.", figures.pulls);
  page->Counter("keelson_ps_pushes_total", "Pushes that were applied, or added to a round.",
                figures.pushes);
  page->Counter("keelson_ps_committed_rounds_total", "Synchronous steps that were applied.",
                figures.committed_rounds);
  page->Counter("keelson_ps_pushed_bytes_total", "Gradients received.", figures.pushed_bytes);
  page->Counter("keelson_ps_pulled_bytes_total", "Values sent.", figures.pulled_bytes);
  page->Counter("keelson_ps_repeated_pushes_total",
                "Messages that had been applied before: sent again, for the answer was lost.",
                figures.repeated_pushes);
  page->Counter("keelson_ps_duplicate_blocks_total", "Blocks of them that were not applied again.",
                figures.duplicate_blocks);
  page->Counter("keelson_ps_refused_calls_total", "Calls refused: their membership is over.",
                figures.refused_calls);
  page->Counter("keelson_ps_outdated_pushes_total", "Pushes refused: their round is over.",
                figures.outdated_pushes);
  page->Gauge("keelson_ps_calls_in_progress", "Bulk calls that are being executed.",
              figures.calls_in_progress);
}

void CollectSnapshots(const ServerFigures& figures, ShardPage* page) {
  page->Counter("keelson_ps_snapshots_total", "Parts of snapshots that were written.",
                figures.snapshots);
  page->Counter("keelson_ps_snapshot_failures_total", "Parts of snapshots that failed.",
                figures.failed_snapshots);
  page->Counter("keelson_ps_snapshot_bytes_total", "Bytes of these parts.", figures.snapshot_bytes);
  page->Counter("keelson_ps_snapshot_seconds_total", "Time to write them.",
                absl::ToDoubleSeconds(figures.snapshot_time));
  page->Counter("keelson_ps_snapshot_cut_seconds_total",
                "Time for which pushes waited for their cuts.",
                absl::ToDoubleSeconds(figures.cut_time));
  page->Gauge("keelson_ps_snapshot_longest_cut_seconds", "The longest of these waits.",
              absl::ToDoubleSeconds(figures.longest_cut));
}

void CollectStaleness(const ServerFigures& figures, ShardPage* page) {
  for (const StalenessHistogram& histogram : figures.staleness) {
    HistogramCounts counts;
    counts.bounds.assign(StalenessHistogram::kBounds.begin(), StalenessHistogram::kBounds.end());
    counts.counts.assign(histogram.counts.begin(), histogram.counts.end());
    counts.sum = static_cast<double>(histogram.sum);
    page->Histogram("keelson_ps_staleness",
                    "Pushes applied between a gradient's values and the gradient.",
                    std::move(counts), {{"task", histogram.task.ToString()}});
  }
}

void CollectFigures(const ServerFigures& figures, ShardPage* page) {
  CollectCalls(figures, page);
  CollectSnapshots(figures, page);
  CollectStaleness(figures, page);
}

void CollectTables(const v1::ShardStatus& shard, ShardPage* page) {
  for (const v1::TablePartStatus& table : shard.tables()) {
    const MetricLabels name = {{"table", table.name()}};
    page->Gauge("keelson_ps_table_rows", "Rows of a table in the shard.", table.rows(), name);
    page->Gauge("keelson_ps_table_bytes",
                "Their memory: values, slots, the index and what cuts keep.", table.bytes(), name);
    page->Counter("keelson_ps_table_refused_rows_total",
                  "Updates left out as there was no memory for a new row.", table.refused_rows(),
                  name);
    page->Counter("keelson_ps_table_expired_rows_total",
                  "Rows erased as no push had them for long.", table.expired_rows(), name);
    page->Gauge("keelson_ps_table_ghosts", "Ids that were counted, but have no row yet.",
                table.ghosts(), name);
    page->Counter("keelson_ps_table_admitted_rows_total", "Rows made for ids that were counted.",
                  table.admitted_rows(), name);
    page->Counter("keelson_ps_table_evicted_rows_total", "Rows erased to make place for others.",
                  table.evicted_rows(), name);
    page->Counter("keelson_ps_table_looked_up_total", "Ids looked up, once in a message.",
                  table.looked_up(), name);
    page->Counter("keelson_ps_table_looked_up_absent_total", "Of these, ids without a row.",
                  table.looked_up_absent(), name);
  }
}

void CollectShard(const v1::ShardStatus& shard, ShardPage* page) {
  const bool ready = shard.state() == v1::ShardStatus::READY;
  page->Gauge("keelson_ps_shard_ready", "1: the server holds its shard.", ready ? 1 : 0);
  page->Gauge("keelson_ps_clients", "Memberships with a bulk call in the last 10 seconds.",
              shard.active_clients());
  page->Gauge("keelson_ps_credits", "Messages that each of them may have in flight.",
              shard.credits());
  page->Gauge("keelson_ps_members", "Members whose pushes are taken.", shard.members());
  if (!ready) return;
  page->Gauge("keelson_ps_shard_step", "Pushes and rounds in the values.", shard.shard_step());
  page->Gauge("keelson_ps_value_bytes", "Values of the shard.", shard.value_bytes());
  page->Gauge("keelson_ps_slot_bytes", "The optimizer's slots.", shard.slot_bytes());
  CollectTables(shard, page);
}

// Whether anybody has asked anything of the shard here.
bool HasWorked(const ServerFigures& figures) {
  return figures.pulls + figures.pushes + figures.committed_rounds + figures.refused_calls +
             figures.snapshots + figures.failed_snapshots >
         0;
}

v1::ShardStatus StatusOf(ParameterHandler* handler) {
  v1::ShardStatus shard;
  // GetStatus is allowed to every caller at any time.
  handler->GetStatus(v1::GetShardStatusRequest(), &shard).IgnoreError();
  return shard;
}

// A process that may hold several shards tells of those that are here, or have been.
void CollectHeldShards(ShardHandlers* shards, MetricPage* page) {
  for (const auto& [number, handler] : shards->all()) {
    const v1::ShardStatus shard = StatusOf(handler.get());
    const ServerFigures figures = handler->figures();
    const bool is_here = handler.get() == shards->own() || shard.state() != v1::ShardStatus::EMPTY;
    if (!is_here && !HasWorked(figures)) continue;
    const MetricLabels labels = {{"shard", absl::StrCat(number)}};
    ShardPage of_shard(labels, page);
    if (is_here) {
      of_shard.Gauge("keelson_ps_shard_replica",
                     "1: another process serves the shard, of which this one keeps a copy.",
                     handler->replica() ? 1 : 0);
      CollectShard(shard, &of_shard);
    }
    CollectFigures(figures, &of_shard);
  }
}

}  // namespace

void CollectServerMetrics(const v1::ShardStatus& shard, const ServerFigures& figures,
                          MetricPage* page) {
  const MetricLabels none;
  ShardPage of_shard(none, page);
  CollectShard(shard, &of_shard);
  CollectFigures(figures, &of_shard);
}

MetricRegistry::Registration AddServerMetrics(MetricRegistry* registry, ParameterHandler* handler) {
  return registry->Add([handler](MetricPage* page) {
    CollectServerMetrics(StatusOf(handler), handler->figures(), page);
  });
}

MetricRegistry::Registration AddServerMetrics(MetricRegistry* registry, ShardHandlers* shards) {
  if (shards->all().size() == 1) return AddServerMetrics(registry, shards->own());
  return registry->Add([shards](MetricPage* page) { CollectHeldShards(shards, page); });
}

}  // namespace keelson
