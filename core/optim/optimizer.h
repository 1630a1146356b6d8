// Optimizers as pure arithmetic on spans of float32: given values, slots and a gradient, the values
// and slots after one update. The caller owns the memory, its blocks and its locks. A rule works on
// each element alone, so an update of a block is the same bits as that part of an update of the
// whole, on any number of shards. It is SIMD code chosen at run time for the processor, and decodes
// the gradient on the way; the bits depend on neither: decoding first and updating with float32
// gives the same, and so does every processor.
//
// Sources of the rules (the formulas stand in train_config.proto):
//   momentum  Polyak (1964); the Nesterov form of Sutskever et al., ICML 2013
//   adagrad   Duchi, Hazan and Singer, JMLR 12 (2011)
//   rmsprop   Tieleman and Hinton, Coursera lecture 6.5 (2012)
//   adam      Kingma and Ba, ICLR 2015
//   adamw     Loshchilov and Hutter, ICLR 2019
//   ftrl      McMahan et al., KDD 2013; TensorFlow's ApplyFtrlV2
// and before any of them, for stale gradients: DC-ASGD-a, Zheng et al., ICML 2017.
#ifndef KEELSON_CORE_OPTIM_OPTIMIZER_H_
#define KEELSON_CORE_OPTIM_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/wire/wire_format.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// One array beside the values that an optimizer keeps for each element.
struct SlotSpec {
  std::string name;  // TensorFlow's name, the last part of "<variable>/<name>"
  float initial_value = 0;
};

// The gradient in wire format: as many elements as the update has, at any address.
struct EncodedGradient {
  EncodedGradient() = default;
  EncodedGradient(WireFormat wire_format, const uint8_t* bytes, float int8_scale = 1)
      : format(wire_format), data(bytes), scale(int8_scale) {}
  explicit EncodedGradient(const float* elements)
      : data(reinterpret_cast<const uint8_t*>(elements)) {}

  // An elementwise format, or kInt8: the bytes of (a part of) one group, without the scale.
  WireFormat format = WireFormat::kFloat32;
  const uint8_t* data = nullptr;
  float scale = 1;  // kInt8
};

// One update of n elements. Every array has n elements. An `out` array may be the `in` array
// of the same position (in place); any other overlap between arrays is not allowed.
struct UpdateArgs {
  absl::Span<const float> values_in;
  absl::Span<const float* const> slots_in;  // one array per Optimizer::slots(), in that order
  EncodedGradient gradient;
  absl::Span<float> values_out;
  absl::Span<float* const> slots_out;
  float learning_rate = 0;
  int64_t update = 0;  // updates that these elements have had before, from 0
  // The values from which the gradient was computed; empty: unknown, or the same as values_in.
  absl::Span<const float> worker_values = {};
};

// Immutable; all methods are thread-safe and never block. A value or gradient that is not finite
// spreads to its own element only; it is not detected here.
class Optimizer {
 public:
  // Two slots of a rule, and the mean square of delay compensation.
  static constexpr size_t kMaxSlots = 3;

  virtual ~Optimizer() = default;

  // At most kMaxSlots; empty for plain SGD.
  const std::vector<SlotSpec>& slots() const { return slots_; }

  // Clips the gradient's elements, adds L2 (g = clip(gradient) + l2 * value), decays the weights
  // and applies the rule. With delay compensation the gradient is corrected before.
  virtual void Update(const UpdateArgs& args) const = 0;

  // Whether UpdateArgs::worker_values makes a difference: with delay compensation.
  virtual bool reads_worker_values() const { return false; }

  // Scalars that TensorFlow stores beside the slots, after `updates` updates: for Adam and AdamW
  // "beta1_power" and "beta2_power", which start at beta1 and beta2; otherwise none.
  virtual std::vector<std::pair<std::string, float>> ScalarState(int64_t updates) const;

 protected:
  explicit Optimizer(std::vector<SlotSpec> slots) : slots_(std::move(slots)) {}

 private:
  const std::vector<SlotSpec> slots_;
};

// What a group of variables has beside an algorithm (OptimizerConfig.Group).
struct OptimizerAdjustment {
  // value -= lr * weight_decay * value before the step; absent: adamw's own, otherwise 0.
  std::optional<float> weight_decay = std::nullopt;
  double rate_factor = 1;  // multiplies UpdateArgs::learning_rate; > 0
  // Of rows: also in the steps that do not have them.
  bool exact_weight_decay = false;
};

// Creates an optimizer with the configured handling of stale gradients (delay compensation); groups
// are ignored (VariableOptimizers). INVALID_ARGUMENT: no kind is set, it is of rows alone
// (row_wise_adagrad), or a number is out of its range or not finite; the text starts with the
// field: "optimizer.momentum.momentum: expected [0, 1), found 1.5",
// "consistency.stale_gradients.delay_compensation.lambda: expected >= 0, found -1".
absl::StatusOr<std::unique_ptr<Optimizer>> CreateOptimizer(
    const v1::OptimizerConfig& config, const v1::StaleGradientConfig& stale_gradients = {},
    const OptimizerAdjustment& adjustment = {});

// The update of a variable that is not trained (VariableSpec::average_decay): value = decay * value
// + (1 - decay) * gradient, the "gradient" being a sample. No slots; the learning rate makes no
// difference. `decay` in [0, 1).
std::unique_ptr<Optimizer> CreateMovingAverage(float decay);

// Changes nothing, and has no slots.
std::unique_ptr<Optimizer> CreateFrozen();

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_OPTIMIZER_H_
