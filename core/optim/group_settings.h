// The settings of a group of variables or tables: those of the job with what the group changes.
// Internal to core/optim.
#ifndef KEELSON_CORE_OPTIM_GROUP_SETTINGS_H_
#define KEELSON_CORE_OPTIM_GROUP_SETTINGS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/optim/optimizer.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct GroupSettings {
  v1::OptimizerConfig optimizer;  // its groups have no meaning
  OptimizerAdjustment adjustment;
};

// `group` is not frozen. INVALID_ARGUMENT: its rate is not > 0 times `base_rate`.
absl::StatusOr<GroupSettings> SettingsOfGroup(const v1::OptimizerConfig& config,
                                              const v1::OptimizerConfig::Group& group,
                                              float base_rate);

// An error of the settings of the group at a position, with the group's path in place of
// "optimizer.".
absl::Status ErrorOfGroup(int group, const absl::Status& error);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_GROUP_SETTINGS_H_
