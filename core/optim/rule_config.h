// OptimizerConfig as a rule with its settings, for variables and rows alike. Internal to
// core/optim.
#ifndef KEELSON_CORE_OPTIM_RULE_CONFIG_H_
#define KEELSON_CORE_OPTIM_RULE_CONFIG_H_

#include <limits>

#include "absl/status/statusor.h"
#include "core/optim/optimizer.h"
#include "core/optim/rules.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// What the rules have in common.
struct CommonSettings {
  float limit = std::numeric_limits<float>::infinity();  // of an element of the gradient
  float l2 = 0;
  float weight_decay = 0;
  double rate_factor = 1;
  // Rows move as adam and adamw move a variable, or decay, in steps that do not have them.
  bool exact = false;
  bool exact_weight_decay = false;
};

struct ConfiguredRule {
  Rule rule;
  CommonSettings common;
};

// INVALID_ARGUMENT as CreateOptimizer's. Groups are ignored.
absl::StatusOr<ConfiguredRule> RuleFromConfig(const v1::OptimizerConfig& config,
                                              const OptimizerAdjustment& adjustment);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_RULE_CONFIG_H_
