#include "core/optim/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/base/status_macros.h"
#include "core/optim/delay_compensation.h"
#include "core/optim/rules.h"
#include "core/optim/update.h"
#include "core/optim/validate.h"

namespace keelson {
namespace {

using Scalars = std::vector<std::pair<std::string, float>>;

template <typename Rule>
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(Rule rule, GradientTransform transform)
      : Optimizer(rule.Slots()), rule_(rule), transform_(transform) {}

  void Update(const UpdateArgs& args) const override {
    assert(args.gradient.format != WireFormat::kTopK);
    assert(args.values_out.size() == args.values_in.size());
    assert(args.slots_in.size() == slots().size());
    assert(args.slots_out.size() == slots().size());
    UpdateElements(rule_.At(args.learning_rate, args.update), transform_, args);
  }

 protected:
  const Rule rule_;

 private:
  const GradientTransform transform_;
};

class AdamOptimizer : public RuleOptimizer<AdamRule> {
 public:
  using RuleOptimizer::RuleOptimizer;

  Scalars ScalarState(int64_t updates) const override {
    const double t = static_cast<double>(updates) + 1;
    return {{"beta1_power", static_cast<float>(std::pow(double{rule_.beta1}, t))},
            {"beta2_power", static_cast<float>(std::pow(double{rule_.beta2}, t))}};
  }
};

class FtrlOptimizer : public RuleOptimizer<FtrlRule> {
 public:
  using RuleOptimizer::RuleOptimizer;

  void Update(const UpdateArgs& args) const override {
    if (args.learning_rate > 0) return RuleOptimizer::Update(args);
    std::copy(args.values_in.begin(), args.values_in.end(), args.values_out.begin());
    for (size_t i = 0; i < args.slots_in.size(); ++i) {
      std::copy_n(args.slots_in[i], args.values_in.size(), args.slots_out[i]);
    }
  }
};

absl::Status Validate(const MomentumRule& rule) {
  return ExpectBelowOne("optimizer.momentum.momentum", rule.momentum);
}

absl::Status Validate(const AdagradRule& rule) {
  RETURN_IF_ERROR(
      ExpectNotNegative("optimizer.adagrad.initial_accumulator", rule.initial_accumulator));
  return ExpectPositive("optimizer.adagrad.epsilon", rule.epsilon);
}

absl::Status Validate(const RmsPropRule& rule) {
  RETURN_IF_ERROR(ExpectBelowOne("optimizer.rmsprop.decay", rule.decay));
  RETURN_IF_ERROR(ExpectBelowOne("optimizer.rmsprop.momentum", rule.momentum));
  return ExpectPositive("optimizer.rmsprop.epsilon", rule.epsilon);
}

absl::Status Validate(absl::string_view field, const AdamRule& rule) {
  RETURN_IF_ERROR(ExpectBelowOne(absl::StrCat(field, ".beta1"), rule.beta1));
  RETURN_IF_ERROR(ExpectBelowOne(absl::StrCat(field, ".beta2"), rule.beta2));
  RETURN_IF_ERROR(ExpectPositive(absl::StrCat(field, ".epsilon"), rule.epsilon));
  return ExpectNotNegative(absl::StrCat(field, ".weight_decay"), rule.weight_decay);
}

absl::Status Validate(const FtrlRule& rule) {
  RETURN_IF_ERROR(
      ExpectNotNegative("optimizer.ftrl.initial_accumulator", rule.initial_accumulator));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.ftrl.l1", rule.l1));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.ftrl.l2", rule.l2));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.ftrl.l2_shrinkage", rule.l2_shrinkage));
  return ExpectNotNegative("optimizer.ftrl.beta", rule.beta);
}

MomentumRule FromConfig(const v1::OptimizerConfig::Momentum& c) {
  return {c.has_momentum() ? c.momentum() : 0.9f};
}

AdagradRule FromConfig(const v1::OptimizerConfig::Adagrad& c) {
  return {c.has_initial_accumulator() ? c.initial_accumulator() : 0.1f,
          c.has_epsilon() ? c.epsilon() : 1e-7f};
}

RmsPropRule FromConfig(const v1::OptimizerConfig::RmsProp& c) {
  return {c.has_decay() ? c.decay() : 0.9f, c.has_momentum() ? c.momentum() : 0.0f,
          c.has_epsilon() ? c.epsilon() : 1e-10f};
}

// Adam or AdamW.
template <typename Config>
AdamRule AdamFromConfig(const Config& c, float weight_decay) {
  return {c.has_beta1() ? c.beta1() : 0.9f, c.has_beta2() ? c.beta2() : 0.999f,
          c.has_epsilon() ? c.epsilon() : 1e-8f, weight_decay};
}

FtrlRule FromConfig(const v1::OptimizerConfig::Ftrl& c) {
  return {c.has_initial_accumulator() ? c.initial_accumulator() : 0.1f, c.l1(), c.l2(),
          c.l2_shrinkage(), c.beta()};
}

template <typename Rule>
std::unique_ptr<Optimizer> Make(Rule rule, GradientTransform transform) {
  return std::make_unique<RuleOptimizer<Rule>>(rule, transform);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeMomentum(const v1::OptimizerConfig::Momentum& config,
                                                        GradientTransform transform) {
  const MomentumRule rule = FromConfig(config);
  RETURN_IF_ERROR(Validate(rule));
  if (config.nesterov()) return Make(NesterovRule{rule.momentum}, transform);
  return Make(rule, transform);
}

template <typename Config>
absl::StatusOr<std::unique_ptr<Optimizer>> MakeValidated(const Config& config,
                                                         GradientTransform transform) {
  const auto rule = FromConfig(config);
  RETURN_IF_ERROR(Validate(rule));
  return Make(rule, transform);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(absl::string_view field, AdamRule rule,
                                                    GradientTransform transform) {
  RETURN_IF_ERROR(Validate(field, rule));
  return std::make_unique<AdamOptimizer>(rule, transform);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeFtrl(const v1::OptimizerConfig::Ftrl& config,
                                                    GradientTransform transform) {
  const FtrlRule rule = FromConfig(config);
  RETURN_IF_ERROR(Validate(rule));
  return std::make_unique<FtrlOptimizer>(rule, transform);
}

constexpr float kNoLimit = std::numeric_limits<float>::infinity();

absl::StatusOr<GradientTransform> MakeTransform(const v1::OptimizerConfig& config) {
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.clip_global_norm", config.clip_global_norm()));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.clip_value", config.clip_value()));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.l2", config.l2()));
  return GradientTransform{config.clip_value() > 0 ? config.clip_value() : kNoLimit, config.l2()};
}

}  // namespace

std::vector<std::pair<std::string, float>> Optimizer::ScalarState(int64_t) const { return {}; }

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(const v1::OptimizerConfig& config) {
  ASSIGN_OR_RETURN(const GradientTransform transform, MakeTransform(config));
  switch (config.kind_case()) {
    case v1::OptimizerConfig::kSgd:
      return Make(SgdRule(), transform);
    case v1::OptimizerConfig::kMomentum:
      return MakeMomentum(config.momentum(), transform);
    case v1::OptimizerConfig::kAdagrad:
      return MakeValidated(config.adagrad(), transform);
    case v1::OptimizerConfig::kRmsprop:
      return MakeValidated(config.rmsprop(), transform);
    case v1::OptimizerConfig::kAdam:
      return MakeAdam("optimizer.adam", AdamFromConfig(config.adam(), 0), transform);
    case v1::OptimizerConfig::kAdamw: {
      const auto& c = config.adamw();
      const float weight_decay = c.has_weight_decay() ? c.weight_decay() : 0.01f;
      return MakeAdam("optimizer.adamw", AdamFromConfig(c, weight_decay), transform);
    }
    case v1::OptimizerConfig::kFtrl:
      return MakeFtrl(config.ftrl(), transform);
    case v1::OptimizerConfig::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "optimizer: expected one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl, found none");
}

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(
    const v1::OptimizerConfig& config, const v1::StaleGradientConfig& stale_gradients) {
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> rule, CreateOptimizer(config));
  if (!stale_gradients.has_delay_compensation()) return rule;
  return CompensateDelay(std::move(rule), stale_gradients.delay_compensation());
}

std::unique_ptr<Optimizer> CreateMovingAverage(float decay) {
  return Make(MovingAverageRule{decay}, {.limit = kNoLimit, .l2 = 0});
}

}  // namespace keelson
