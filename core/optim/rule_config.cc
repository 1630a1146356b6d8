#include "core/optim/rule_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/optim/validate.h"

namespace keelson {
namespace {

using Config = v1::OptimizerConfig;

absl::StatusOr<Rule> FromConfig(const Config::Momentum& c) {
  const MomentumRule rule = {c.has_momentum() ? c.momentum() : 0.9f};
  RETURN_IF_ERROR(ExpectBelowOne("optimizer.momentum.momentum", rule.momentum));
  if (c.nesterov()) return NesterovRule{rule.momentum};
  return rule;
}

absl::StatusOr<Rule> FromConfig(const Config::Adagrad& c) {
  const AdagradRule rule = {c.has_initial_accumulator() ? c.initial_accumulator() : 0.1f,
                            c.has_epsilon() ? c.epsilon() : 1e-7f};
  RETURN_IF_ERROR(
      ExpectNotNegative("optimizer.adagrad.initial_accumulator", rule.initial_accumulator));
  RETURN_IF_ERROR(ExpectPositive("optimizer.adagrad.epsilon", rule.epsilon));
  return rule;
}

absl::StatusOr<Rule> FromConfig(const Config::RowWiseAdagrad& c) {
  const RowWiseAdagradRule rule = {c.initial_accumulator(), c.has_epsilon() ? c.epsilon() : 1e-8f};
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.row_wise_adagrad.initial_accumulator",
                                    rule.initial_accumulator));
  RETURN_IF_ERROR(ExpectPositive("optimizer.row_wise_adagrad.epsilon", rule.epsilon));
  return rule;
}

absl::StatusOr<Rule> FromConfig(const Config::RmsProp& c) {
  const RmsPropRule rule = {c.has_decay() ? c.decay() : 0.9f,
                            c.has_momentum() ? c.momentum() : 0.0f,
                            c.has_epsilon() ? c.epsilon() : 1e-10f};
  RETURN_IF_ERROR(ExpectBelowOne("optimizer.rmsprop.decay", rule.decay));
  RETURN_IF_ERROR(ExpectBelowOne("optimizer.rmsprop.momentum", rule.momentum));
  RETURN_IF_ERROR(ExpectPositive("optimizer.rmsprop.epsilon", rule.epsilon));
  return rule;
}

// Adam or AdamW.
template <typename AdamConfig>
absl::StatusOr<Rule> AdamFromConfig(absl::string_view field, const AdamConfig& c) {
  const AdamRule rule = {c.has_beta1() ? c.beta1() : 0.9f, c.has_beta2() ? c.beta2() : 0.999f,
                         c.has_epsilon() ? c.epsilon() : 1e-8f, c.corrected_epsilon()};
  RETURN_IF_ERROR(ExpectBelowOne(absl::StrCat(field, ".beta1"), rule.beta1));
  RETURN_IF_ERROR(ExpectBelowOne(absl::StrCat(field, ".beta2"), rule.beta2));
  RETURN_IF_ERROR(ExpectPositive(absl::StrCat(field, ".epsilon"), rule.epsilon));
  if (c.exact() && !(double{rule.beta1} * rule.beta1 < rule.beta2)) {
    return OutOfRange(absl::StrCat(field, ".beta1"), "below the square root of beta2 with exact",
                      rule.beta1);
  }
  return rule;
}

absl::StatusOr<Rule> FromConfig(const Config::Ftrl& c) {
  const FtrlRule rule = {c.has_initial_accumulator() ? c.initial_accumulator() : 0.1f, c.l1(),
                         c.l2(), c.l2_shrinkage(), c.beta()};
  RETURN_IF_ERROR(
      ExpectNotNegative("optimizer.ftrl.initial_accumulator", rule.initial_accumulator));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.ftrl.l1", rule.l1));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.ftrl.l2", rule.l2));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.ftrl.l2_shrinkage", rule.l2_shrinkage));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.ftrl.beta", rule.beta));
  return rule;
}

absl::StatusOr<Rule> KindFromConfig(const Config& config) {
  switch (config.kind_case()) {
    case Config::kSgd:
      return SgdRule();
    case Config::kMomentum:
      return FromConfig(config.momentum());
    case Config::kAdagrad:
      return FromConfig(config.adagrad());
    case Config::kRmsprop:
      return FromConfig(config.rmsprop());
    case Config::kAdam:
      return AdamFromConfig("optimizer.adam", config.adam());
    case Config::kAdamw:
      return AdamFromConfig("optimizer.adamw", config.adamw());
    case Config::kFtrl:
      return FromConfig(config.ftrl());
    case Config::kRowWiseAdagrad:
      return FromConfig(config.row_wise_adagrad());
    case Config::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "optimizer: expected one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl, "
      "row_wise_adagrad, found none");
}

absl::StatusOr<float> WeightDecayOf(const Config& config, const OptimizerAdjustment& adjustment) {
  float decay = 0;
  if (config.has_adamw()) {
    decay = config.adamw().has_weight_decay() ? config.adamw().weight_decay() : 0.01f;
    RETURN_IF_ERROR(ExpectNotNegative("optimizer.adamw.weight_decay", decay));
  }
  if (!adjustment.weight_decay.has_value()) return decay;
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.weight_decay", *adjustment.weight_decay));
  return *adjustment.weight_decay;
}

absl::StatusOr<CommonSettings> CommonFromConfig(const Config& config,
                                                const OptimizerAdjustment& adjustment) {
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.clip_global_norm", config.clip_global_norm()));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.clip_value", config.clip_value()));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.l2", config.l2()));
  CommonSettings common;
  if (config.clip_value() > 0) common.limit = config.clip_value();
  common.l2 = config.l2();
  common.rate_factor = adjustment.rate_factor;
  ASSIGN_OR_RETURN(common.weight_decay, WeightDecayOf(config, adjustment));
  common.exact = config.adam().exact() || config.adamw().exact();
  common.exact_weight_decay = adjustment.exact_weight_decay || config.adamw().exact();
  if (adjustment.exact_weight_decay && common.weight_decay == 0) {
    return OutOfRange("optimizer.weight_decay", "> 0 with exact_weight_decay", 0);
  }
  return common;
}

}  // namespace

absl::StatusOr<ConfiguredRule> RuleFromConfig(const v1::OptimizerConfig& config,
                                              const OptimizerAdjustment& adjustment) {
  ASSIGN_OR_RETURN(const CommonSettings common, CommonFromConfig(config, adjustment));
  ASSIGN_OR_RETURN(const Rule rule, KindFromConfig(config));
  return ConfiguredRule{rule, common};
}

}  // namespace keelson
