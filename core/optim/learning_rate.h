// The learning rate as a function of the step: a linear warm-up, then a constant, stepwise,
// exponential or cosine schedule (Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts).
// The formulas stand beside LearningRateConfig in train_config.proto.
#ifndef KEELSON_CORE_OPTIM_LEARNING_RATE_H_
#define KEELSON_CORE_OPTIM_LEARNING_RATE_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Immutable and thread-safe.
class LearningRateSchedule {
 public:
  // `max_steps`: the step at which training ends, 0 when unknown; a cosine without decay_steps
  // lasts from the end of the warm-up to it.
  // INVALID_ARGUMENT: a number is out of its range; a cosine has neither decay_steps nor
  // max_steps. The text starts with the field: "learning_rate.base: expected > 0, found 0".
  static absl::StatusOr<LearningRateSchedule> Create(v1::LearningRateConfig config,
                                                     int64_t max_steps);

  // The rate of step `step`, from 0. A cosine stays at base * alpha after its end.
  float At(int64_t step) const;

 private:
  explicit LearningRateSchedule(v1::LearningRateConfig config) : config_(std::move(config)) {}

  v1::LearningRateConfig config_;  // valid, with all defaults filled in
};

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_LEARNING_RATE_H_
