// What a row misses in the steps that do not have it: factors that depend on how many there were.
// Internal to core/optim. Computed in double precision from products alone, with no function of a
// mathematical library, so that servers and readers have the same bits on every processor.
#ifndef KEELSON_CORE_OPTIM_CATCH_UP_H_
#define KEELSON_CORE_OPTIM_CATCH_UP_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/optim/rules.h"

namespace keelson {

// The powers of a number with exponents of 32 bits.
class PowerTable {
 public:
  explicit PowerTable(double base);

  double operator()(uint32_t exponent) const {
    double power = 1;
    for (size_t level = 0; exponent != 0; ++level, exponent >>= kBits) {
      power *= levels_[level][exponent % kEntries];
    }
    return power;
  }

 private:
  static constexpr int kBits = 4;
  static constexpr size_t kEntries = size_t{1} << kBits;

  std::array<std::array<double, kEntries>, 32 / kBits> levels_;
};

// Adam's bias correction sqrt(1 - beta2^t) / (1 - beta1^t), the factor of the rate at the update t
// (from 1).
class BiasCorrection {
 public:
  explicit BiasCorrection(const AdamRule& rule) : beta1_(rule.beta1), beta2_(rule.beta2) {}

  double At(int64_t t) const;

 private:
  const PowerTable beta1_, beta2_;
};

// Adam's updates with gradients of 0 after the update t: q = beta1 / sqrt(beta2) < 1 is how m /
// sqrt(v) shrinks in each.
class AdamSeries {
 public:
  explicit AdamSeries(const AdamRule& rule);

  // The sum over all j >= 1 of q^j * (the bias correction at t + j), t >= 0.
  double All(int64_t t) const;
  // That over j = 1..k; `all_behind` is All(t + k).
  double Movement(int64_t t, uint32_t k, double all_behind) const {
    return All(t) - q_power_(k) * all_behind;
  }
  // The mean of j = 1..k with weights q^j: the steps that the movement of k > 0 steps takes.
  double MeanStep(uint32_t k) const {
    const double rest = q_power_(k);
    return 1 / (1 - q_) - static_cast<double>(k) * rest / (1 - rest);
  }
  // What m and v are multiplied by in k updates: beta1^k and beta2^k, or 0 where those are too
  // small to matter.
  float FactorOfM(uint32_t k) const;
  float FactorOfV(uint32_t k) const;

 private:
  const double q_;
  const BiasCorrection correction_;
  const PowerTable beta1_, beta2_, q_power_;
  std::vector<double>
      all_;  // All of t = 0, 1, ..., as far as the correction changes much in 1 / (1 - q)
};

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_CATCH_UP_H_
