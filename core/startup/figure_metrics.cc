#include "core/startup/figure_metrics.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/figures.h"

namespace keelson {
namespace {

void Collect(absl::string_view prefix, MetricLabels labels, const Figure& figure,
             const v1::WorkerFigures& figures, MetricPage* page) {
  const v1::FigureOptions& options = figure.options();
  const std::string name = absl::StrCat(prefix, options.metric());
  const bool counter = absl::EndsWith(name, "_total");
  if (!options.kind().empty()) labels.emplace_back("kind", options.kind());
  (counter ? page->Counter(name, options.help()) : page->Gauge(name, options.help()))
      .Add(figure.Number(figures), std::move(labels));
}

}  // namespace

void CollectWorkerFigures(const v1::WorkerFigures& figures, MetricPage* page) {
  for (const Figure& figure : WorkerFigures()) {
    const v1::FigureOptions& options = figure.options();
    if (options.metric().empty() || options.chief_only()) continue;
    Collect("keelson_worker_", {}, figure, figures, page);
  }
}

void CollectReportedFigures(const std::string& task, const v1::WorkerFigures& figures,
                            MetricPage* page) {
  for (const Figure& figure : WorkerFigures()) {
    if (figure.options().metric().empty()) continue;
    Collect("keelson_chief_worker_", {{"task", task}}, figure, figures, page);
  }
}

}  // namespace keelson
