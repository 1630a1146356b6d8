// DC-ASGD-a (Zheng et al., "Asynchronous stochastic gradient descent with delay compensation", ICML
// 2017) before any other rule: a gradient that was computed from old values is corrected to what it
// would be at the present ones. Internal to core/optim; the formula stands beside
// StaleGradientConfig in train_config.proto.
#ifndef KEELSON_CORE_OPTIM_DELAY_COMPENSATION_H_
#define KEELSON_CORE_OPTIM_DELAY_COMPENSATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/optim/optimizer.h"

namespace keelson {

// `rule`, given corrected gradients; one more slot, "MeanSquare", after the rule's.
// INVALID_ARGUMENT as CreateOptimizer's.
absl::StatusOr<std::unique_ptr<Optimizer>> CompensateDelay(
    std::unique_ptr<Optimizer> rule, const v1::StaleGradientConfig::DelayCompensation& config);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_DELAY_COMPENSATION_H_
