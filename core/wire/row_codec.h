// Rows of embedding tables to and from their wire formats (v1::RowSection): `dim` elements in an
// elementwise format, or int8: a float32 scale, then one signed byte per element. Every processor
// gives the same bits. Byte pointers need no alignment. Pure functions; thread-safe.
#ifndef KEELSON_CORE_WIRE_ROW_CODEC_H_
#define KEELSON_CORE_WIRE_ROW_CODEC_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "core/wire/byte_rope.h"
#include "core/wire/wire_format.h"

namespace keelson {

// Whether rows may have the format: all but top-k.
constexpr bool IsRowFormat(WireFormat format) { return format <= WireFormat::kInt8; }

// Bytes of one row. 1 <= dim <= kInt8GroupElements, here and below, and IsRowFormat(format).
constexpr size_t RowBytes(WireFormat format, int64_t dim) { return EncodedBytes(format, dim); }

// Writes rows one after another. Elements as EncodeElements has them, int8 as EncodeInt8 without
// what other messages have lost: a row with an element that is not finite becomes all NaN.
void EncodeRows(WireFormat format, absl::Span<const float* const> rows, int64_t dim, uint8_t* to);
// Those of a matrix [rows, dim].
void EncodeRows(WireFormat format, absl::Span<const float> matrix, int64_t dim, uint8_t* to);

// Reads rows into a matrix [rows, dim].
void DecodeRows(WireFormat format, const uint8_t* from, int64_t dim, absl::Span<float> matrix);
// Likewise; the cursor has enough bytes, and rows may lie across fragments.
void TakeRows(WireFormat format, ByteCursor* cursor, int64_t dim, absl::Span<float> matrix);

// Whether all elements of the next `rows` rows are finite. The cursor has enough bytes.
bool TakeFiniteRows(WireFormat format, ByteCursor* cursor, int64_t rows, int64_t dim);

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_ROW_CODEC_H_
