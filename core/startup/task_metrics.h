// The metrics that every task exports, whatever its role.
#ifndef KEELSON_CORE_STARTUP_TASK_METRICS_H_
#define KEELSON_CORE_STARTUP_TASK_METRICS_H_

#include "core/metrics/metric_registry.h"
#include "core/startup/role_program.h"

namespace keelson {

// Adds keelson_task_info, which identifies the task, and the metrics of the process
// (core/metrics/process_metrics.h). Registers at the context's own registry.
MetricRegistry::Registration AddTaskMetrics(const RoleContext& context);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_TASK_METRICS_H_
