#include "core/optim/group_settings.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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
    case Group::kRowWiseAdagrad:
      *config->mutable_row_wise_adagrad() = group.row_wise_adagrad();
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

}  // namespace

absl::StatusOr<GroupSettings> SettingsOfGroup(const v1::OptimizerConfig& config, const Group& group,
                                              float base_rate) {
  GroupSettings out = {config, {}};
  SetKind(group, &out.optimizer);
  if (group.has_clip_value()) out.optimizer.set_clip_value(group.clip_value());
  if (group.has_l2()) out.optimizer.set_l2(group.l2());
  if (group.has_weight_decay()) out.adjustment.weight_decay = group.weight_decay();
  out.adjustment.exact_weight_decay = group.exact_weight_decay();
  out.adjustment.rate_factor = RateFactor(group, base_rate);
  if (out.adjustment.rate_factor > 0) return out;
  return absl::InvalidArgumentError(absl::StrCat("optimizer.learning_rate: expected > 0, found ",
                                                 out.adjustment.rate_factor,
                                                 " times that of the others"));
}

absl::Status ErrorOfGroup(int group, const absl::Status& error) {
  return absl::Status(error.code(), absl::StrCat("optimizer.groups[", group, "].",
                                                 absl::StripPrefix(error.message(), "optimizer.")));
}

}  // namespace keelson
