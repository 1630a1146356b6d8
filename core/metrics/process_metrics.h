// Metrics of this process from the kernel (proc(5)), under the names that Prometheus' own client
// libraries use: https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics.
#ifndef KEELSON_CORE_METRICS_PROCESS_METRICS_H_
#define KEELSON_CORE_METRICS_PROCESS_METRICS_H_

#include "core/metrics/metric_page.h"

namespace keelson {

// Adds process_start_time_seconds (since the epoch), process_cpu_seconds_total,
// process_resident_memory_bytes, process_virtual_memory_bytes, process_threads, process_open_fds
// and process_max_fds. Values that cannot be read are left out.
void CollectProcessMetrics(MetricPage* page);

}  // namespace keelson

#endif  // KEELSON_CORE_METRICS_PROCESS_METRICS_H_
