#include "core/optim/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <variant>

#include "core/base/status_macros.h"
#include "core/optim/delay_compensation.h"
#include "core/optim/rule_config.h"
#include "core/optim/rules.h"
#include "core/optim/update.h"

namespace keelson {
namespace {

using Scalars = std::vector<std::pair<std::string, float>>;

template <typename OfElements>
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(OfElements rule, const CommonSettings& common)
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

  const OfElements rule_;

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

template <typename OfElements>
std::unique_ptr<Optimizer> Make(OfElements rule, const CommonSettings& common) {
  return std::make_unique<RuleOptimizer<OfElements>>(rule, common);
}

// Makes the optimizer of a configured rule.
struct MakeOptimizer {
  using Made = absl::StatusOr<std::unique_ptr<Optimizer>>;

  template <typename OfElements>
  Made operator()(OfElements rule) const {
    return Make(rule, common);
  }
  Made operator()(AdamRule rule) const { return std::make_unique<AdamOptimizer>(rule, common); }
  Made operator()(FtrlRule rule) const { return std::make_unique<FtrlOptimizer>(rule, common); }
  Made operator()(const RowWiseAdagradRule&) const {
    return absl::InvalidArgumentError(
        "optimizer.row_wise_adagrad: expected an algorithm for variables, found one for the rows "
        "of tables alone");
  }

  const CommonSettings& common;
};

}  // namespace

std::vector<std::pair<std::string, float>> Optimizer::ScalarState(int64_t) const { return {}; }

absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(
    const v1::OptimizerConfig& config, const v1::StaleGradientConfig& stale_gradients,
    const OptimizerAdjustment& adjustment) {
  ASSIGN_OR_RETURN(const ConfiguredRule configured, RuleFromConfig(config, adjustment));
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                   std::visit(MakeOptimizer{configured.common}, configured.rule));
  if (!stale_gradients.has_delay_compensation()) return optimizer;
  return CompensateDelay(std::move(optimizer), stale_gradients.delay_compensation());
}

std::unique_ptr<Optimizer> CreateMovingAverage(float decay) {
  return Make(MovingAverageRule{decay}, {});
}

std::unique_ptr<Optimizer> CreateFrozen() { return std::make_unique<FrozenOptimizer>(); }

}  // namespace keelson
