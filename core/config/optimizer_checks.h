// Checks of OptimizerConfig and its groups. Internal to core/config.
#ifndef KEELSON_CORE_CONFIG_OPTIMIZER_CHECKS_H_
#define KEELSON_CORE_CONFIG_OPTIMIZER_CHECKS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// What a model has for an optimizer.
struct OptimizedNames {
  absl::Span<const VariableSpec> variables;
  absl::Span<const TableSpec> tables = {};
};

// Checks a configuration whose defaults are set for a model. INVALID_ARGUMENT as
// CheckTrainConfig's.
absl::Status CheckOptimizer(const v1::OptimizerConfig& optimizer, const OptimizedNames& names);

// Whether any variable may be updated by ftrl.
bool UsesFtrl(const v1::OptimizerConfig& optimizer);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_OPTIMIZER_CHECKS_H_
