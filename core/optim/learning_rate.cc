#include "core/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/optim/validate.h"

namespace keelson {
namespace {

constexpr double kPi = 3.14159265358979323846;

absl::Status Validate(const v1::LearningRateConfig::Step& step) {
  if (step.boundaries().empty()) {
    return absl::InvalidArgumentError(
        "learning_rate.step.boundaries: expected at least one, found none");
  }
  for (int i = 0; i < step.boundaries_size(); ++i) {
    const std::string field = absl::StrCat("learning_rate.step.boundaries[", i, "]");
    const int64_t last = i == 0 ? 0 : step.boundaries(i - 1);
    if (step.boundaries(i) <= last) {
      return OutOfRange(field, absl::StrCat("> ", last), step.boundaries(i));
    }
  }
  return ExpectPositive("learning_rate.step.factor", step.factor());
}

absl::Status Validate(const v1::LearningRateConfig::Exponential& exponential) {
  RETURN_IF_ERROR(ExpectPositive("learning_rate.exponential.rate", exponential.rate()));
  return ExpectPositive("learning_rate.exponential.decay_steps", exponential.decay_steps());
}

absl::Status Validate(const v1::LearningRateConfig::Cosine& cosine) {
  RETURN_IF_ERROR(ExpectNotNegative("learning_rate.cosine.decay_steps", cosine.decay_steps()));
  return ExpectUpToOne("learning_rate.cosine.alpha", cosine.alpha());
}

absl::Status Validate(const v1::LearningRateConfig& config) {
  RETURN_IF_ERROR(ExpectPositive("learning_rate.base", config.base()));
  RETURN_IF_ERROR(ExpectNotNegative("learning_rate.warmup_steps", config.warmup_steps()));
  switch (config.schedule_case()) {
    case v1::LearningRateConfig::kStep:
      return Validate(config.step());
    case v1::LearningRateConfig::kExponential:
      return Validate(config.exponential());
    case v1::LearningRateConfig::kCosine:
      return Validate(config.cosine());
    case v1::LearningRateConfig::kConstant:
    case v1::LearningRateConfig::SCHEDULE_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DefaultDecaySteps(int64_t warmup_steps, int64_t max_steps) {
  if (max_steps <= 0) {
    return absl::InvalidArgumentError(
        "learning_rate.cosine.decay_steps: expected > 0 as max_steps is unknown, found 0");
  }
  // A job that ends within its warm-up never reaches the cosine.
  return std::max<int64_t>(1, max_steps - warmup_steps);
}

double StepFactor(const v1::LearningRateConfig::Step& step, int64_t t) {
  const auto passed = std::upper_bound(step.boundaries().begin(), step.boundaries().end(), t) -
                      step.boundaries().begin();
  return std::pow(double{step.factor()}, static_cast<double>(passed));
}

double ExponentialFactor(const v1::LearningRateConfig::Exponential& exponential, int64_t t) {
  const double exponent = static_cast<double>(t) / static_cast<double>(exponential.decay_steps());
  return std::pow(double{exponential.rate()},
                  exponential.staircase() ? std::floor(exponent) : exponent);
}

double CosineFactor(const v1::LearningRateConfig::Cosine& cosine, int64_t t) {
  const double progress = static_cast<double>(std::min(t, cosine.decay_steps())) /
                          static_cast<double>(cosine.decay_steps());
  return cosine.alpha() + (1 - double{cosine.alpha()}) * (1 + std::cos(kPi * progress)) / 2;
}

// `t` counts from the end of the warm-up.
double ScheduleFactor(const v1::LearningRateConfig& config, int64_t t) {
  switch (config.schedule_case()) {
    case v1::LearningRateConfig::kStep:
      return StepFactor(config.step(), t);
    case v1::LearningRateConfig::kExponential:
      return ExponentialFactor(config.exponential(), t);
    case v1::LearningRateConfig::kCosine:
      return CosineFactor(config.cosine(), t);
    case v1::LearningRateConfig::kConstant:
    case v1::LearningRateConfig::SCHEDULE_NOT_SET:
      break;
  }
  return 1;
}

}  // namespace

absl::StatusOr<LearningRateSchedule> LearningRateSchedule::Create(v1::LearningRateConfig config,
                                                                  int64_t max_steps) {
  RETURN_IF_ERROR(Validate(config));
  if (config.has_cosine() && config.cosine().decay_steps() == 0) {
    ASSIGN_OR_RETURN(const int64_t steps, DefaultDecaySteps(config.warmup_steps(), max_steps));
    config.mutable_cosine()->set_decay_steps(steps);
  }
  return LearningRateSchedule(std::move(config));
}

float LearningRateSchedule::At(int64_t step) const {
  const double base = config_.base();
  const int64_t warmup = config_.warmup_steps();
  if (step < warmup) {
    return static_cast<float>(base * static_cast<double>(step + 1) / static_cast<double>(warmup));
  }
  return static_cast<float>(base * ScheduleFactor(config_, step - warmup));
}

}  // namespace keelson
