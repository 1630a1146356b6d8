// The gradient of a block as it lies in a message: checked before anything is applied, then read in
// the pieces in which it came.
#ifndef KEELSON_PS_SERVER_UNITS_GRADIENT_READER_H_
#define KEELSON_PS_SERVER_UNITS_GRADIENT_READER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/optim/optimizer.h"
#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"

namespace keelson {

// Where a block's gradient starts, and how it is written.
struct WireGradient {
  WireFormat format = WireFormat::kFloat32;
  ByteCursor* cursor = nullptr;
};

// Moves the cursor behind the gradient of `elements` elements. INVALID_ARGUMENT, the text without
// the block ("expected 4000 bytes, found 12 left"): there is less; a top-k gradient has more
// elements than the block, or positions that do not ascend or lie beyond it; `reject_non_finite`
// and an element is not finite, or an int8 scale is so large that one could be.
absl::Status CheckGradient(const WireGradient& gradient, int64_t elements, bool reject_non_finite);

// Takes the elements [first, first + count) of the block, as EncodedGradient describes them.
using GradientVisitor =
    absl::FunctionRef<void(int64_t first, int64_t count, const EncodedGradient& gradient)>;

// Gives all elements to `visit`, in order and without gaps, and moves the cursor behind them. What
// lies together in the message is given as it lies there; an element that is cut by the border of
// a fragment is put together first. A top-k gradient is given as dense float32, a chunk at a time.
// Only for what CheckGradient has approved.
void ReadGradient(const WireGradient& gradient, int64_t elements, GradientVisitor visit);

// Moves the cursor behind the gradient, and no more. Likewise.
void SkipGradient(const WireGradient& gradient, int64_t elements);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_GRADIENT_READER_H_
