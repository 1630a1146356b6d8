// The metrics that a parameter server exports; docs/metrics.md lists them.
#ifndef KEELSON_PS_SERVER_SERVICE_SERVER_METRICS_H_
#define KEELSON_PS_SERVER_SERVICE_SERVER_METRICS_H_

#include "core/metrics/metric_registry.h"
#include "keelson/v1/parameter_service.pb.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/service/server_figures.h"
#include "ps_server/service/shard_handlers.h"

namespace keelson {

// Adds the families keelson_ps_*. Those that describe the shard are left out while there is none.
void CollectServerMetrics(const v1::ShardStatus& shard, const ServerFigures& figures,
                          MetricPage* page);

// What is registered outlives the registration. A process that may hold several shards tells of
// each that is here, or was, with the label `shard`.
MetricRegistry::Registration AddServerMetrics(MetricRegistry* registry, ParameterHandler* handler);
MetricRegistry::Registration AddServerMetrics(MetricRegistry* registry, ShardHandlers* shards);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_SERVER_METRICS_H_
