// Checks the gradient of a block in a message before anything is applied, then reads it in the
// pieces in which it was received.
#ifndef KEELSON_PS_SERVER_UNITS_GRADIENT_READER_H_
#define KEELSON_PS_SERVER_UNITS_GRADIENT_READER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/optim/optimizer.h"
#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"

namespace keelson {

// The position and format of a block's gradient.
struct WireGradient {
  WireFormat format = WireFormat::kFloat32;
  ByteCursor* cursor = nullptr;
};

// Moves the cursor behind the gradient of `elements` elements. INVALID_ARGUMENT, the text without
// the block ("expected 4000 bytes, found 12 left"): the message is too short; a top-k gradient has
// more elements than the block, or positions that do not ascend or lie beyond it;
// `reject_non_finite` and an element is not finite, or an int8 scale is so large that one could be.
absl::Status CheckGradient(const WireGradient& gradient, int64_t elements, bool reject_non_finite);

// Gets the elements [first, first + count) of the block, as EncodedGradient describes them.
using GradientVisitor =
    absl::FunctionRef<void(int64_t first, int64_t count, const EncodedGradient& gradient)>;

// Passes all elements to `visit`, in order and without gaps, and moves the cursor behind them.
// Contiguous elements are passed in place; an element across the border of two fragments is copied
// first. A top-k gradient is passed as dense float32, a chunk at a time. CheckGradient must have
// approved the gradient.
void ReadGradient(const WireGradient& gradient, int64_t elements, GradientVisitor visit);

// Moves the cursor behind a gradient that CheckGradient has approved.
void SkipGradient(const WireGradient& gradient, int64_t elements);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_GRADIENT_READER_H_
