#include "core/optim/optimizer_groups.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/name_pattern.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

using Group = v1::OptimizerConfig::Group;

// Gives `config` the group's algorithm, if it has one.
void SetKind(const Group& group, v1::OptimizerConfig* config) {
  switch (group.kind_case()) {
    case Group::kSgd:
      *config->mutable_sgd() = group.sgd();
      break;
    case Group::kMomentum:
      *config->mutable_momentum() = group.momentum();
      break;
    case Group::kAdagrad:
      *config->mutable_adagrad() = group.adagrad();
      break;
    case Group::kRmsprop:
      *config->mutable_rmsprop() = group.rmsprop();
      break;
    case Group::kAdam:
      *config->mutable_adam() = group.adam();
      break;
    case Group::kAdamw:
      *config->mutable_adamw() = group.adamw();
      break;
    case Group::kFtrl:
      *config->mutable_ftrl() = group.ftrl();
      break;
    case Group::KIND_NOT_SET:
      break;
  }
}

double RateFactor(const Group& group, float base_rate) {
  switch (group.rate_case()) {
    case Group::kLearningRate:
      return double{group.learning_rate()} / base_rate;
    case Group::kLearningRateFactor:
      return group.learning_rate_factor();
    case Group::RATE_NOT_SET:
      break;
  }
  return 1;
}

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOfGroup(const VariableOptimizers::Config& config,
                                                         const Group& group) {
  if (group.frozen()) return CreateFrozen();
  v1::OptimizerConfig merged = config.optimizer;
  SetKind(group, &merged);
  if (group.has_clip_value()) merged.set_clip_value(group.clip_value());
  if (group.has_l2()) merged.set_l2(group.l2());
  OptimizerAdjustment adjustment;
  if (group.has_weight_decay()) adjustment.weight_decay = group.weight_decay();
  adjustment.rate_factor = RateFactor(group, config.base_rate);
  if (!(adjustment.rate_factor > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("optimizer.learning_rate: expected > 0, found ",
                                                   adjustment.rate_factor,
                                                   " times that of the others"));
  }
  return CreateOptimizer(merged, config.stale_gradients, adjustment);
}

// The settings without groups are valid, so the error is of the group.
absl::Status ErrorOfGroup(int group, const absl::Status& error) {
  return absl::Status(error.code(), absl::StrCat("optimizer.groups[", group, "].",
                                                 absl::StripPrefix(error.message(), "optimizer.")));
}

}  // namespace

const Group* OptimizerGroupOf(const v1::OptimizerConfig& config, absl::string_view variable) {
  const auto group = std::find_if(
      config.groups().begin(), config.groups().end(),
      [&](const Group& candidate) { return MatchesPattern(candidate.variables(), variable); });
  return group == config.groups().end() ? nullptr : &*group;
}

bool IsFrozen(const v1::OptimizerConfig& config, const VariableSpec& variable) {
  const Group* const group = OptimizerGroupOf(config, variable.name);
  return variable.trained() && group != nullptr && group->frozen();
}

absl::StatusOr<VariableOptimizers> VariableOptimizers::Create(
    const Config& config, absl::Span<const VariableSpec> variables) {
  VariableOptimizers out;
  ASSIGN_OR_RETURN(out.optimizers_.emplace_back(),
                   CreateOptimizer(config.optimizer, config.stale_gradients));
  std::map<const Group*, size_t> of_group = {{nullptr, 0}};
  for (int i = 0; i < config.optimizer.groups_size(); ++i) {
    const Group& group = config.optimizer.groups(i);
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
