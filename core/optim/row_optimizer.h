// Optimizers of the rows of an embedding table, as pure arithmetic: given rows, their gradients and
// how often they were updated, the rows after one update each. A row is float32: values [dim], then
// the slots in their order, without gaps; who owns the memory, its locks and the counters is the
// caller. The rules are those of optimizer.h, applied to each row by itself, and row-wise Adagrad
// (Gupta, Gupta et al., "Deep Learning Recommendation Model", FBGEMM and TorchRec); the formulas,
// and what happens to rows in steps that do not have them, stand in train_config.proto.
//
// SIMD code chosen at run time for the processor, once per call. The bits of a row depend neither
// on the processor, nor on the other rows of the call, nor on the format: decoding the gradients
// first gives the same.
#ifndef KEELSON_CORE_OPTIM_ROW_OPTIMIZER_H_
#define KEELSON_CORE_OPTIM_ROW_OPTIMIZER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/optim/optimizer.h"
#include "core/wire/wire_format.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Numbers beside a row's values.
struct RowSlotSpec {
  std::string name;  // as SlotSpec's
  size_t floats;     // per row: dim or 1
  float initial_value;
};

// Gradients of rows, as they travel: that of row i of a batch begins at data + i * stride, at any
// address.
struct RowGradients {
  // float32, float16 or bfloat16 [dim]; or kInt8: a float32 scale and then int8 [dim].
  WireFormat format = WireFormat::kFloat32;
  const uint8_t* data = nullptr;
  size_t stride = 0;  // bytes
};

// The steps that a row has missed between its last update and `step`, counting neither; when rows
// are read, `step` is the number of steps that have been done. 0 where its last update was later.
inline uint32_t MissedSteps(uint32_t last_step, int64_t step) {
  const int64_t missed = step - int64_t{last_step} - 1;
  return static_cast<uint32_t>(
      std::clamp<int64_t>(missed, 0, std::numeric_limits<uint32_t>::max()));
}

// Distinct rows to update. What is by row has as many elements as `rows`.
struct RowBatch {
  // Aligned as a float is. Null: no such row, skipped with its gradient.
  absl::Span<float* const> rows;
  RowGradients gradients;
  // Updates that each row has had before, saturating at 65535. May be empty if !counts_updates().
  absl::Span<const uint16_t> updates = {};
  // Steps between each row's last update (or its creation) and this step that had no gradient of
  // it, not counting this step. May be empty if !catches_up().
  absl::Span<const uint32_t> missed = {};
  int64_t step = 0;  // that this update belongs to, from 0; used if catches_up()
  float learning_rate = 0;
  // The rate of the missed steps; differs from learning_rate where that one is scaled by staleness.
  float missed_learning_rate = 0;
};

// Rows to read; as RowBatch.
struct RowReadBatch {
  absl::Span<const float* const> rows;
  absl::Span<const uint32_t> missed = {};
  int64_t step = 0;  // steps that have been done; those that a row has missed are the last of them
  float learning_rate = 0;
  // The values of row i go to values + i * stride; those of a null row stay as they are.
  float* values = nullptr;
  size_t stride = 0;  // floats
};

// Immutable; all methods are thread-safe and never block. A number that is not finite spreads to
// its own element only, of row-wise Adagrad to its own row only; it is not detected here.
class RowOptimizer {
 public:
  virtual ~RowOptimizer() = default;

  size_t dim() const { return dim_; }
  // In the order in which they follow the values.
  const std::vector<RowSlotSpec>& slots() const { return slots_; }
  // Of a row: dim() and all slots.
  size_t row_floats() const { return row_floats_; }

  // Makes up for each row's missed steps, and then updates it as Optimizer::Update does.
  virtual void Update(const RowBatch& batch) const = 0;

  // Copies values as they are after the missed steps, which nothing stores: the bits that an Update
  // at the same step makes of them before it comes to its gradient. Without catches_up() those are
  // the row's values.
  virtual void Read(const RowReadBatch& batch) const = 0;

  // Whether RowBatch::updates makes a difference: with adam and adamw unless exact.
  virtual bool counts_updates() const { return false; }
  // Whether `missed` and `step` make a difference: with `exact` and `exact_weight_decay`.
  virtual bool catches_up() const { return false; }

 protected:
  RowOptimizer(size_t dim, std::vector<RowSlotSpec> slots);

 private:
  const size_t dim_;
  const std::vector<RowSlotSpec> slots_;
  const size_t row_floats_;
};

// Creates the optimizer of a table's rows, 1 <= dim <= TableSpec::kMostDim; groups are ignored
// (TableOptimizers). INVALID_ARGUMENT as CreateOptimizer's, but that algorithms of rows alone are
// taken.
absl::StatusOr<std::unique_ptr<RowOptimizer>> CreateRowOptimizer(
    const v1::OptimizerConfig& config, const OptimizerAdjustment& adjustment, size_t dim);

// Changes no row, and has no slots.
std::unique_ptr<RowOptimizer> CreateFrozenRows(size_t dim);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_ROW_OPTIMIZER_H_
