// The observable state of a task.
#ifndef KEELSON_CORE_STARTUP_TELEMETRY_H_
#define KEELSON_CORE_STARTUP_TELEMETRY_H_

#include <atomic>

#include "core/metrics/metric_registry.h"

namespace keelson {

// Thread-safe.
struct Telemetry {
  MetricRegistry metrics;
  // The task is able to take part: a server or chief answers calls, a worker or evaluator has
  // opened its data. A server is ready before it holds its shard: the chief that fills it finds it
  // by a name, which Kubernetes gives to ready pods only.
  std::atomic<bool> ready{false};
};

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_TELEMETRY_H_
