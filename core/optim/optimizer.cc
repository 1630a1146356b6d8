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

// What the rules have in common.
struct CommonSettings {
  float limit = std::numeric_limits<float>::infinity();  // of an element of the gradient
  float l2 = 0;
  float weight_decay = 0;
  double rate_factor = 1;
};

template <typename Rule>
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(Rule rule, const CommonSettings& common)
      : Optimizer(rule.Slots()), rule_(rule), common_(common) {}

  void Update(const UpdateArgs& args) const override {
    assert(args.gradient.format != WireFormat::kTopK);
    assert(args.values_out.size() == args.values_in.size());
    assert(args.slots_in.size() == slots().size());
    assert(args.slots_out.size() == slots().size());
    const float rate = RateAt(args);
    const auto keep = static_cast<float>(1 - double{rate} * common_.weight_decay);
    UpdateElements(rule_.At(rate, args.update), {common_.limit, common_.l2, keep}, args);
  }

 protected:
  float RateAt(const UpdateArgs& args) const {
    return static_cast<float>(args.learning_rate * common_.rate_factor);
  }

  const Rule rule_;

 private:
  const CommonSettings common_;
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

void Leave(const float* in, size_t n, float* out) {
  if (in != out) std::copy_n(in, n, out);
}

// Leaves values and slots as they are.
void Leave(const UpdateArgs& args) {
  Leave(args.values_in.data(), args.values_in.size(), args.values_out.data());
  for (size_t i = 0; i < args.slots_in.size(); ++i) {
    Leave(args.slots_in[i], args.values_in.size(), args.slots_out[i]);
  }
}

class FtrlOptimizer : public RuleOptimizer<FtrlRule> {
 public:
  using RuleOptimizer::RuleOptimizer;

  void Update(const UpdateArgs& args) const override {
    if (RateAt(args) > 0) return RuleOptimizer::Update(args);
    Leave(args);
  }
};

class FrozenOptimizer : public Optimizer {
 public:
  FrozenOptimizer() : Optimizer({}) {}

  void Update(const UpdateArgs& args) const override { Leave(args); }
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
  return ExpectPositive(absl::StrCat(field, ".epsilon"), rule.epsilon);
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
AdamRule AdamFromConfig(const Config& c) {
  return {c.has_beta1() ? c.beta1() : 0.9f, c.has_beta2() ? c.beta2() : 0.999f,
          c.has_epsilon() ? c.epsilon() : 1e-8f};
}

FtrlRule FromConfig(const v1::OptimizerConfig::Ftrl& c) {
  return {c.has_initial_accumulator() ? c.initial_accumulator() : 0.1f, c.l1(), c.l2(),
          c.l2_shrinkage(), c.beta()};
}

template <typename Rule>
std::unique_ptr<Optimizer> Make(Rule rule, const CommonSettings& common) {
  return std::make_unique<RuleOptimizer<Rule>>(rule, common);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeMomentum(const v1::OptimizerConfig::Momentum& config,
                                                        const CommonSettings& common) {
  const MomentumRule rule = FromConfig(config);
  RETURN_IF_ERROR(Validate(rule));
  if (config.nesterov()) return Make(NesterovRule{rule.momentum}, common);
  return Make(rule, common);
}

template <typename Config>
absl::StatusOr<std::unique_ptr<Optimizer>> MakeValidated(const Config& config,
                                                         const CommonSettings& common) {
  const auto rule = FromConfig(config);
  RETURN_IF_ERROR(Validate(rule));
  return Make(rule, common);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(absl::string_view field, AdamRule rule,
                                                    const CommonSettings& common) {
  RETURN_IF_ERROR(Validate(field, rule));
  return std::make_unique<AdamOptimizer>(rule, common);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeFtrl(const v1::OptimizerConfig::Ftrl& config,
                                                    const CommonSettings& common) {
  const FtrlRule rule = FromConfig(config);
  RETURN_IF_ERROR(Validate(rule));
  return std::make_unique<FtrlOptimizer>(rule, common);
}

absl::StatusOr<CommonSettings> MakeCommon(const v1::OptimizerConfig& config,
                                          const OptimizerAdjustment& adjustment) {
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.clip_global_norm", config.clip_global_norm()));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.clip_value", config.clip_value()));
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.l2", config.l2()));
  CommonSettings common;
  if (config.clip_value() > 0) common.limit = config.clip_value();
  common.l2 = config.l2();
  common.rate_factor = adjustment.rate_factor;
  if (config.has_adamw()) {
    const float decay = config.adamw().has_weight_decay() ? config.adamw().weight_decay() : 0.01f;
    RETURN_IF_ERROR(ExpectNotNegative("optimizer.adamw.weight_decay", decay));
    common.weight_decay = decay;
  }
  if (!adjustment.weight_decay.has_value()) return common;
  RETURN_IF_ERROR(ExpectNotNegative("optimizer.weight_decay", *adjustment.weight_decay));
  common.weight_decay = *adjustment.weight_decay;
  return common;
}

absl::StatusOr<std::unique_ptr<Optimizer>> CreateRule(const v1::OptimizerConfig& config,
                                                      const OptimizerAdjustment& adjustment) {
  ASSIGN_OR_RETURN(const CommonSettings common, MakeCommon(config, adjustment));
  switch (config.kind_case()) {
    case v1::OptimizerConfig::kSgd:
      return Make(SgdRule(), common);
    case v1::OptimizerConfig::kMomentum:
      return MakeMomentum(config.momentum(), common);
    case v1::OptimizerConfig::kAdagrad:
      return MakeValidated(config.adagrad(), common);
    case v1::OptimizerConfig::kRmsprop:
      return MakeValidated(config.rmsprop(), common);
    case v1::OptimizerConfig::kAdam:
      return MakeAdam("optimizer.adam", AdamFromConfig(config.adam()), common);
    case v1::OptimizerConfig::kAdamw:
      return MakeAdam("optimizer.adamw", AdamFromConfig(config.adamw()), common);
    case v1::OptimizerConfig::kFtrl:
      return MakeFtrl(config.ftrl(), common);
    case v1::OptimizerConfig::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "optimizer: expected one of sgd, momentum, adagrad, rmsprop, adam, adamw, ftrl, found none");
}

}  // namespace

std::vector<std::pair<std::string, float>> Optimizer::ScalarState(int64_t) const { return {}; }

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(
    const v1::OptimizerConfig& config, const v1::StaleGradientConfig& stale_gradients,
    const OptimizerAdjustment& adjustment) {
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> rule, CreateRule(config, adjustment));
  if (!stale_gradients.has_delay_compensation()) return rule;
  return CompensateDelay(std::move(rule), stale_gradients.delay_compensation());
}

std::unique_ptr<Optimizer> CreateMovingAverage(float decay) {
  return Make(MovingAverageRule{decay}, {});
}

std::unique_ptr<Optimizer> CreateFrozen() { return std::make_unique<FrozenOptimizer>(); }

}  // namespace keelson
