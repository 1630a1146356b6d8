// Checks of OptimizerConfig and its groups. Internal to core/config.
#ifndef KEELSON_CORE_CONFIG_OPTIMIZER_CHECKS_H_
#define KEELSON_CORE_CONFIG_OPTIMIZER_CHECKS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Checks a configuration whose defaults are set for a model's variables. INVALID_ARGUMENT as
// CheckTrainConfig's.
absl::Status CheckOptimizer(const v1::OptimizerConfig& optimizer,
                            absl::Span<const VariableSpec> variables);

// Whether any variable may be updated by ftrl.
bool UsesFtrl(const v1::OptimizerConfig& optimizer);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_OPTIMIZER_CHECKS_H_
