// Elements of a bundle as float32.
#ifndef KEELSON_CORE_CHECKPOINT_ELEMENT_CONVERSION_H_
#define KEELSON_CORE_CHECKPOINT_ELEMENT_CONVERSION_H_

#include "absl/types/span.h"
#include "core/checkpoint/bundle_format.h"

namespace keelson {

// Floating-point numbers of 16, 32 and 64 bits, integers of at least 8 and bool; not strings,
// complex numbers, quantized ones (their scale is elsewhere) and floats of 8 bits.
bool IsNumeric(BundleDtype dtype);

// Reads to.size() elements, little-endian, from any address. A number that float32 cannot hold is
// rounded to the nearest one, ties to even; one that is too large becomes infinite. `dtype` is
// numeric.
void ConvertToFloat(BundleDtype dtype, const char* from, absl::Span<float> to);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_ELEMENT_CONVERSION_H_
