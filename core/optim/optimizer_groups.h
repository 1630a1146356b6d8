// The optimizers of a model's variables: OptimizerConfig with its groups, resolved.
#ifndef KEELSON_CORE_OPTIM_OPTIMIZER_GROUPS_H_
#define KEELSON_CORE_OPTIM_OPTIMIZER_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/optim/optimizer.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The first of config.groups() whose pattern matches the name of a variable or table; null: none.
const v1::OptimizerConfig::Group* OptimizerGroupOf(const v1::OptimizerConfig& config,
                                                   absl::string_view name);

// Whether the variable is one that training leaves as it is.
bool IsFrozen(const v1::OptimizerConfig& config, const VariableSpec& variable);

// Immutable, and movable.
class VariableOptimizers {
 public:
  struct Config {
    v1::OptimizerConfig optimizer;
    v1::StaleGradientConfig stale_gradients = {};
    float base_rate = 0;  // learning_rate.base; > 0 where a group has a rate in its place
  };

  // INVALID_ARGUMENT as CreateOptimizer's; of a group the text starts with "optimizer.groups[1].".
  // Groups that decide for no variable are left out: they are of tables (TableOptimizers).
  static absl::StatusOr<VariableOptimizers> Create(const Config& config,
                                                   absl::Span<const VariableSpec> variables);

  // One optimizer for all of so many variables.
  static VariableOptimizers OfAll(std::unique_ptr<Optimizer> optimizer, size_t variables);

  // Of a position in `variables`; lives as long as this, also when it is moved.
  const Optimizer& Of(size_t variable) const { return *optimizers_[of_[variable]]; }
  // By variable.
  std::vector<std::vector<SlotSpec>> Slots() const;
  // Whether any of them does, as Optimizer's.
  bool reads_worker_values() const;

  // As Optimizer::ScalarState, of all groups; as TensorFlow names them when there are several,
  // "beta1_power", "beta1_power_1".
  std::vector<std::pair<std::string, float>> ScalarState(int64_t updates) const;

 private:
  VariableOptimizers() = default;

  // That without a group, those of the groups that variables have, and those of moving averages.
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  std::vector<size_t> of_;  // by variable
};

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_OPTIMIZER_GROUPS_H_
