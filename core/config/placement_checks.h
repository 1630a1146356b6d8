// Checks of PlacementConfig. Internal to core/config.
#ifndef KEELSON_CORE_CONFIG_PLACEMENT_CHECKS_H_
#define KEELSON_CORE_CONFIG_PLACEMENT_CHECKS_H_

#include "absl/status/status.h"
#include "core/cluster/cluster_spec.h"
#include "core/model/spec/model_variables.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Checks the groups for a model. INVALID_ARGUMENT, with the field: a group has no pattern or no
// place, decides for nothing, or has the workers hold a table.
absl::Status CheckPlacement(const v1::PlacementConfig& config, const ModelVariables& model);

// Checks the groups for a cluster. INVALID_ARGUMENT, with the field: it has no parameter servers,
// or lists no workers, that a group names. A cluster of one process has both.
absl::Status CheckPlacementFits(const v1::PlacementConfig& config, const ClusterSpec& cluster);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_PLACEMENT_CHECKS_H_
