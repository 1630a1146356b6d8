// The figures of workers (figures.proto) as metrics; docs/metrics.md lists them.
#ifndef KEELSON_CORE_STARTUP_FIGURE_METRICS_H_
#define KEELSON_CORE_STARTUP_FIGURE_METRICS_H_

#include <string>

#include "core/metrics/metric_page.h"
#include "keelson/v1/figures.pb.h"

namespace keelson {

// Adds keelson_worker_<metric> of each figure that a worker exports as one number.
void CollectWorkerFigures(const v1::WorkerFigures& figures, MetricPage* page);

// Adds keelson_chief_worker_<metric> of each figure that has a metric, of the worker `task`.
void CollectReportedFigures(const std::string& task, const v1::WorkerFigures& figures,
                            MetricPage* page);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_FIGURE_METRICS_H_
