// The loops of the row optimizers over the rows of a batch, as SIMD code chosen at run time for the
// processor, once per call. Internal to row_optimizer.cc.
#ifndef KEELSON_CORE_OPTIM_ROW_UPDATE_H_
#define KEELSON_CORE_OPTIM_ROW_UPDATE_H_

#include <cstddef>
#include <variant>

#include "absl/types/span.h"
#include "core/optim/row_optimizer.h"
#include "core/optim/rules.h"

namespace keelson {

using RowStep =
    std::variant<SgdRule::Step, MomentumRule::Step, NesterovRule::Step, AdagradRule::Step,
                 RmsPropRule::Step, AdamRule::Step, FtrlRule::Step, RowWiseAdagradRule::Step>;

// Makes up for missed steps: value = (value - movement * m / (sqrt(v) + epsilon)) * keep, m and v
// times their factors. Without Adam's slots value *= keep.
struct RowCatchUp {
  bool any = false;  // whether a step was missed
  float movement = 0, m = 1, v = 1;
  float keep = 1;
};

// How rows are made up for; `rows` may be empty: no row has missed a step.
struct RowCatchUps {
  absl::Span<const RowCatchUp> rows;
  bool has_moments = false;  // Adam's
  float epsilon = 0;         // Adam's
};

// Some rows of a batch. What is by row has as many elements as `rows`.
struct RowUpdateArgs {
  size_t dim = 0;
  absl::Span<float* const> rows;  // null: skipped
  RowGradients gradients;         // of the first of `rows` on
  RowStep step;
  absl::Span<const float> rates;  // in place of AdamRule::Step::rate, if any
  RowCatchUps catch_ups;
  ElementTransform transform;
};

void UpdateRows(const RowUpdateArgs& args);

struct RowReadArgs {
  size_t dim = 0;
  absl::Span<const float* const> rows;  // null: skipped
  RowCatchUps catch_ups;
  float* values = nullptr;  // of the first of `rows`
  size_t stride = 0;        // floats from one row's values to the next's
};

void ReadRows(const RowReadArgs& args);

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_ROW_UPDATE_H_
