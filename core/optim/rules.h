// The update rules, one small struct each: their settings, slots and the arithmetic that is the
// same for every element. Internal to core/optim; rules-inl.h has the arithmetic of single
// elements.
//
// At(learning_rate, update) computes in double precision and returns a Step: the factors of one
// update.
#ifndef KEELSON_CORE_OPTIM_RULES_H_
#define KEELSON_CORE_OPTIM_RULES_H_

#include <cmath>
#include <cstdint>
#include <variant>
#include <vector>

#include "core/optim/optimizer.h"

namespace keelson {

struct SgdRule {
  struct Step {
    static constexpr int kSlots = 0;
    float rate;
  };

  std::vector<SlotSpec> Slots() const { return {}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate}; }
};

struct MomentumRule {
  float momentum;

  struct Step {
    static constexpr int kSlots = 1;
    float rate, momentum;
  };

  std::vector<SlotSpec> Slots() const { return {{"Momentum", 0}}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate, momentum}; }
};

struct NesterovRule {
  float momentum;

  struct Step {
    static constexpr int kSlots = 1;
    float rate, momentum;
  };

  std::vector<SlotSpec> Slots() const { return {{"Momentum", 0}}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate, momentum}; }
};

struct AdagradRule {
  float initial_accumulator, epsilon;

  struct Step {
    static constexpr int kSlots = 1;
    float rate, epsilon;
  };

  std::vector<SlotSpec> Slots() const { return {{"Adagrad", initial_accumulator}}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate, epsilon}; }
};

// Of rows: the accumulator is one number per row.
struct RowWiseAdagradRule {
  float initial_accumulator, epsilon;

  struct Step {
    static constexpr int kSlots = 1;
    float rate, epsilon;
  };

  std::vector<SlotSpec> Slots() const { return {{"RowWiseAdagrad", initial_accumulator}}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate, epsilon}; }
};

struct RmsPropRule {
  float decay, momentum, epsilon;

  struct Step {
    static constexpr int kSlots = 2;
    float rate, decay, rest, momentum, epsilon;
  };

  std::vector<SlotSpec> Slots() const { return {{"RMSProp", 1}, {"RMSProp_1", 0}}; }
  Step At(float learning_rate, int64_t) const {
    return {learning_rate, decay, 1 - decay, momentum, epsilon};
  }
};

// AdamW is this with ElementTransform::keep.
struct AdamRule {
  float beta1, beta2, epsilon;
  bool corrected_epsilon = false;

  struct Step {
    static constexpr int kSlots = 2;
    float rate, beta1, rest1, beta2, rest2, epsilon;
  };

  std::vector<SlotSpec> Slots() const { return {{"Adam", 0}, {"Adam_1", 0}}; }
  Step At(float learning_rate, int64_t update) const {
    const double t = static_cast<double>(update) + 1;
    const double correction = std::sqrt(1 - std::pow(double{beta2}, t));
    const double rate = learning_rate * correction / (1 - std::pow(double{beta1}, t));
    const double added = corrected_epsilon ? epsilon * correction : double{epsilon};
    return {static_cast<float>(rate), beta1, 1 - beta1, beta2, 1 - beta2,
            static_cast<float>(added)};
  }
};

// At a rate of 0 the caller leaves everything as it is.
struct FtrlRule {
  float initial_accumulator, l1, l2, l2_shrinkage, beta;

  struct Step {
    static constexpr int kSlots = 2;
    float rate, l1, divisor, shrinkage;
  };

  std::vector<SlotSpec> Slots() const { return {{"Ftrl", initial_accumulator}, {"Ftrl_1", 0}}; }
  Step At(float learning_rate, int64_t) const {
    return {learning_rate, l1, static_cast<float>(double{beta} / learning_rate + 2 * double{l2}),
            2 * l2_shrinkage};
  }
};

// The "gradient" is a sample whose moving average the values are.
struct MovingAverageRule {
  float decay;

  struct Step {
    static constexpr int kSlots = 0;
    float decay, rest;
  };

  std::vector<SlotSpec> Slots() const { return {}; }
  Step At(float, int64_t) const { return {decay, 1 - decay}; }
};

// Those that a configuration may name.
using Rule = std::variant<SgdRule, MomentumRule, NesterovRule, AdagradRule, RmsPropRule, AdamRule,
                          FtrlRule, RowWiseAdagradRule>;

// Of rules whose elements are independent of each other.
using Step =
    std::variant<SgdRule::Step, MomentumRule::Step, NesterovRule::Step, AdagradRule::Step,
                 RmsPropRule::Step, AdamRule::Step, FtrlRule::Step, MovingAverageRule::Step>;

// What a rule gets: g = clip(gradient) + l2 * value, and then keep * value as the value. A NaN
// stays a NaN.
struct ElementTransform {
  float limit;  // infinity: no clipping
  float l2;
  float keep;  // decoupled weight decay; 1: none
};

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_RULES_H_
