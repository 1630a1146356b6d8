#include "core/optim/optimizer_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/name_pattern.h"
#include "core/base/status_macros.h"
#include "core/optim/group_settings.h"
#include "core/optim/rule_config.h"

namespace keelson {
namespace {

using Group = v1::OptimizerConfig::Group;

// That of the settings that no group changes; of rows alone there is none, but where a variable
// needs it.
absl::StatusOr<std::unique_ptr<Optimizer>> CreateWithoutGroup(
    const VariableOptimizers::Config& config, bool used) {
  RETURN_IF_ERROR(RuleFromConfig(config.optimizer, {}).status());
  if (!used && config.optimizer.has_row_wise_adagrad()) return CreateFrozen();
  return CreateOptimizer(config.optimizer, config.stale_gradients);
}

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOfGroup(const VariableOptimizers::Config& config,
                                                         const Group& group) {
  if (group.frozen()) return CreateFrozen();
  ASSIGN_OR_RETURN(const GroupSettings settings,
                   SettingsOfGroup(config.optimizer, group, config.base_rate));
  return CreateOptimizer(settings.optimizer, config.stale_gradients, settings.adjustment);
}

// The groups that decide for a variable; null: one is without a group.
std::set<const Group*> UsedGroups(const v1::OptimizerConfig& config,
                                  absl::Span<const VariableSpec> variables) {
  std::set<const Group*> used;
  for (const VariableSpec& variable : variables) {
    if (variable.trained()) used.insert(OptimizerGroupOf(config, variable.name));
  }
  return used;
}

}  // namespace

const Group* OptimizerGroupOf(const v1::OptimizerConfig& config, absl::string_view name) {
  const auto group = std::find_if(
      config.groups().begin(), config.groups().end(),
      [&](const Group& candidate) { return MatchesPattern(candidate.variables(), name); });
  return group == config.groups().end() ? nullptr : &*group;
}

bool IsFrozen(const v1::OptimizerConfig& config, const VariableSpec& variable) {
  const Group* const group = OptimizerGroupOf(config, variable.name);
  return variable.trained() && group != nullptr && group->frozen();
}

absl::StatusOr<VariableOptimizers> VariableOptimizers::Create(
    const Config& config, absl::Span<const VariableSpec> variables) {
  VariableOptimizers out;
  const std::set<const Group*> used = UsedGroups(config.optimizer, variables);
  ASSIGN_OR_RETURN(out.optimizers_.emplace_back(),
                   CreateWithoutGroup(config, used.contains(nullptr)));
  std::map<const Group*, size_t> of_group = {{nullptr, 0}};
  for (int i = 0; i < config.optimizer.groups_size(); ++i) {
    const Group& group = config.optimizer.groups(i);
    if (!used.contains(&group)) continue;
    absl::StatusOr<std::unique_ptr<Optimizer>> optimizer = CreateOfGroup(config, group);
    if (!optimizer.ok()) return ErrorOfGroup(i, optimizer.status());
    of_group[&group] = out.optimizers_.size();
    out.optimizers_.push_back(*std::move(optimizer));
  }
  for (const VariableSpec& variable : variables) {
    if (variable.trained()) {
      out.of_.push_back(of_group.at(OptimizerGroupOf(config.optimizer, variable.name)));
    } else {
      out.of_.push_back(out.optimizers_.size());
      out.optimizers_.push_back(CreateMovingAverage(*variable.average_decay));
    }
  }
  return out;
}

VariableOptimizers VariableOptimizers::OfAll(std::unique_ptr<Optimizer> optimizer,
                                             size_t variables) {
  VariableOptimizers all;
  all.optimizers_.push_back(std::move(optimizer));
  all.of_.resize(variables, 0);
  return all;
}

bool VariableOptimizers::reads_worker_values() const {
  return std::any_of(optimizers_.begin(), optimizers_.end(),
                     [](const auto& optimizer) { return optimizer->reads_worker_values(); });
}

std::vector<std::vector<SlotSpec>> VariableOptimizers::Slots() const {
  std::vector<std::vector<SlotSpec>> slots;
  for (const size_t optimizer : of_) slots.push_back(optimizers_[optimizer]->slots());
  return slots;
}

std::vector<std::pair<std::string, float>> VariableOptimizers::ScalarState(int64_t updates) const {
  std::vector<std::pair<std::string, float>> all;
  std::map<std::string, int> count;
  for (const std::unique_ptr<Optimizer>& optimizer : optimizers_) {
    for (const auto& [name, value] : optimizer->ScalarState(updates)) {
      const int before = count[name]++;
      all.emplace_back(before == 0 ? name : absl::StrCat(name, "_", before), value);
    }
  }
  return all;
}

}  // namespace keelson
