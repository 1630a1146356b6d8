// The update rules, one small struct each, as they act on one element, and the loop that takes a
// rule over a block. Internal to optimizer.cc.
//
// A rule has kSlots, Slots() and At(learning_rate, update), which does all arithmetic that is the
// same for every element, in double precision, and returns a Step: the function of one element.
// Steps and the loop hold no branches and no calls, so that the compiler makes SIMD code of them.
#ifndef KEELSON_CORE_OPTIM_RULES_H_
#define KEELSON_CORE_OPTIM_RULES_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/optim/optimizer.h"

namespace keelson {

struct SgdRule {
  static constexpr int kSlots = 0;

  struct Step {
    float rate;
    void operator()(float g, float& value, float&, float&) const { value -= rate * g; }
  };

  std::vector<SlotSpec> Slots() const { return {}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate}; }
};

struct MomentumRule {
  static constexpr int kSlots = 1;
  float momentum;

  struct Step {
    float rate, momentum;
    void operator()(float g, float& value, float& accumulator, float&) const {
      accumulator = momentum * accumulator + g;
      value -= rate * accumulator;
    }
  };

  std::vector<SlotSpec> Slots() const { return {{"Momentum", 0}}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate, momentum}; }
};

struct NesterovRule {
  static constexpr int kSlots = 1;
  float momentum;

  struct Step {
    float rate, momentum;
    void operator()(float g, float& value, float& accumulator, float&) const {
      accumulator = momentum * accumulator + g;
      value -= rate * (g + momentum * accumulator);
    }
  };

  std::vector<SlotSpec> Slots() const { return {{"Momentum", 0}}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate, momentum}; }
};

struct AdagradRule {
  static constexpr int kSlots = 1;
  float initial_accumulator, epsilon;

  struct Step {
    float rate, epsilon;
    void operator()(float g, float& value, float& accumulator, float&) const {
      accumulator += g * g;
      value -= rate * g / (std::sqrt(accumulator) + epsilon);
    }
  };

  std::vector<SlotSpec> Slots() const { return {{"Adagrad", initial_accumulator}}; }
  Step At(float learning_rate, int64_t) const { return {learning_rate, epsilon}; }
};

struct RmsPropRule {
  static constexpr int kSlots = 2;
  float decay, momentum, epsilon;

  struct Step {
    float rate, decay, rest, momentum, epsilon;
    void operator()(float g, float& value, float& mean_square, float& mom) const {
      mean_square = decay * mean_square + rest * (g * g);
      mom = momentum * mom + rate * g / std::sqrt(mean_square + epsilon);
      value -= mom;
    }
  };

  std::vector<SlotSpec> Slots() const { return {{"RMSProp", 1}, {"RMSProp_1", 0}}; }
  Step At(float learning_rate, int64_t) const {
    return {learning_rate, decay, 1 - decay, momentum, epsilon};
  }
};

// Adam, and AdamW when weight_decay is not 0.
struct AdamRule {
  static constexpr int kSlots = 2;
  float beta1, beta2, epsilon, weight_decay;

  struct Step {
    float rate, keep, beta1, rest1, beta2, rest2, epsilon;
    void operator()(float g, float& value, float& m, float& v) const {
      m = beta1 * m + rest1 * g;
      v = beta2 * v + rest2 * (g * g);
      value = keep * value - rate * m / (std::sqrt(v) + epsilon);
    }
  };

  std::vector<SlotSpec> Slots() const { return {{"Adam", 0}, {"Adam_1", 0}}; }
  Step At(float learning_rate, int64_t update) const {
    const double t = static_cast<double>(update) + 1;
    const double rate = learning_rate * std::sqrt(1 - std::pow(double{beta2}, t)) /
                        (1 - std::pow(double{beta1}, t));
    const double keep = 1 - double{learning_rate} * weight_decay;
    return {static_cast<float>(rate),
            static_cast<float>(keep),
            beta1,
            1 - beta1,
            beta2,
            1 - beta2,
            epsilon};
  }
};

// g = clip(gradient) + l2 * value. A NaN stays a NaN.
struct GradientTransform {
  float limit;  // infinity: no clipping
  float l2;

  float operator()(float gradient, float value) const {
    float g = gradient < -limit ? -limit : gradient;
    g = limit < g ? limit : g;
    return g + l2 * value;
  }
};

template <int kSlots, typename Step>
void ForEachElement(const UpdateArgs& args, GradientTransform transform, Step step) {
  const size_t n = args.values_in.size();
  const float* const gradient = args.gradient.data();
  const float* const value_in = args.values_in.data();
  float* const value_out = args.values_out.data();
  const float* const first_in = kSlots > 0 ? args.slots_in[0] : nullptr;
  const float* const second_in = kSlots > 1 ? args.slots_in[1] : nullptr;
  float* const first_out = kSlots > 0 ? args.slots_out[0] : nullptr;
  float* const second_out = kSlots > 1 ? args.slots_out[1] : nullptr;
  // Arrays are equal or disjoint, so no element depends on another one.
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    float value = value_in[i], first = 0, second = 0;
    if constexpr (kSlots > 0) first = first_in[i];
    if constexpr (kSlots > 1) second = second_in[i];
    step(transform(gradient[i], value), value, first, second);
    value_out[i] = value;
    if constexpr (kSlots > 0) first_out[i] = first;
    if constexpr (kSlots > 1) second_out[i] = second;
  }
}

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_RULES_H_
