// Elements to and from their wire formats, as SIMD code chosen at run time for the processor. Every
// processor gives the same bits. Byte pointers need no alignment. Pure functions; thread-safe.
#ifndef KEELSON_CORE_WIRE_VALUE_CODEC_H_
#define KEELSON_CORE_WIRE_VALUE_CODEC_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "core/wire/wire_format.h"

namespace keelson {

// Elementwise formats. Rounds to nearest, ties to even; what is too large for float16 becomes
// infinite; a NaN stays a NaN.
void EncodeElements(WireFormat format, absl::Span<const float> from, uint8_t* to);
// Reads to.size() elements.
void DecodeElements(WireFormat format, const uint8_t* from, absl::Span<float> to);

// Whether all `elements` elements of an elementwise format are finite.
bool AllFinite(WireFormat format, const uint8_t* from, int64_t elements);

// int8, whole blocks: EncodedBytes(kInt8, n) bytes. The scale of a group is its largest magnitude
// / 127. Error feedback (Seide et al., Interspeech 2014; Karimireddy et al., ICML 2019): what is
// encoded is from + residual, and what the encoding loses becomes the new residual. A group with an
// element that is not finite gets the scale NaN, which makes all of it NaN, and its residual is
// cleared: the receiver sees it.
void EncodeInt8(absl::Span<const float> from, absl::Span<float> residual, uint8_t* to);
// One group of to.size() <= kInt8GroupElements elements.
void DecodeInt8Group(float scale, const uint8_t* from, absl::Span<float> to);

// top-k: the `count` largest magnitudes of from + residual, the rest becomes the new residual
// (Stich et al., NeurIPS 2018; Lin et al., ICLR 2018). Appends TopKBytes(count) bytes. 1 <= count
// <= from.size(). NaNs count as largest; of equal magnitudes those in front are kept. What was sent
// leaves the residual 0, whatever it is.
void EncodeTopK(absl::Span<const float> from, int64_t count, absl::Span<float> residual,
                std::string* to);

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_VALUE_CODEC_H_
