// What a chief exports; docs/metrics.md lists it.
#ifndef KEELSON_CHIEF_LIFECYCLE_CHIEF_METRICS_H_
#define KEELSON_CHIEF_LIFECYCLE_CHIEF_METRICS_H_

#include "chief/coordination/coordinator_status.h"
#include "chief/servers/snapshotter.h"
#include "core/metrics/metric_registry.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

class Chief;

// Adds the families keelson_chief_*. Values that are not known yet (rates before the first
// interval, snapshots before the first one) are left out.
void CollectChiefMetrics(const CoordinatorStatus& status, const SnapshotFigures& snapshots,
                         MetricPage* page);

// Adds how often a snapshot is due; `checkpoint` is final.
void CollectSnapshotInterval(const v1::CheckpointConfig& checkpoint, MetricPage* page);

// `chief` outlives the registration.
MetricRegistry::Registration AddChiefMetrics(MetricRegistry* registry, Chief* chief,
                                             const v1::CheckpointConfig& checkpoint);

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_CHIEF_METRICS_H_
