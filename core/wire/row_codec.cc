#include "core/wire/row_codec.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

constexpr size_t kMostRowBytes = RowBytes(WireFormat::kFloat32, kInt8GroupElements);
// The largest magnitude of an int8 element before its scale.
constexpr float kInt8Magnitude = 128;

// A row is one group of EncodeInt8.
void EncodeInt8Row(absl::Span<const float> row, uint8_t* to) {
  std::array<float, kInt8GroupElements> residual;
  std::fill_n(residual.begin(), row.size(), 0.0f);
  EncodeInt8(row, absl::MakeSpan(residual).first(row.size()), to);
}

void EncodeRow(WireFormat format, absl::Span<const float> row, uint8_t* to) {
  if (format == WireFormat::kInt8) {
    EncodeInt8Row(row, to);
  } else {
    EncodeElements(format, row, to);
  }
}

float ScaleOf(const uint8_t* row) {
  float scale;
  std::memcpy(&scale, row, sizeof(scale));
  return scale;
}

bool FiniteRows(WireFormat format, const uint8_t* from, int64_t rows, int64_t dim) {
  if (format != WireFormat::kInt8) return AllFinite(format, from, rows * dim);
  bool finite = true;
  for (int64_t r = 0; r < rows; ++r) {
    const float scale = ScaleOf(from + r * RowBytes(format, dim));
    finite &= std::isfinite(scale * kInt8Magnitude);
  }
  return finite;
}

// Visits the next `rows` rows in order, as many at a time as lie in one piece.
void VisitRows(ByteCursor* cursor, size_t row_bytes, size_t rows,
               absl::FunctionRef<void(const uint8_t* from, size_t count)> visit) {
  assert(row_bytes <= kMostRowBytes);
  std::array<uint8_t, kMostRowBytes> cut;
  while (rows > 0) {
    const absl::Span<const uint8_t> piece = cursor->Next(rows * row_bytes);
    const size_t whole = piece.size() / row_bytes;
    if (whole > 0) visit(piece.data(), whole);
    rows -= whole;
    const size_t rest = piece.size() - whole * row_bytes;
    if (rest == 0) continue;
    std::memcpy(cut.data(), piece.data() + whole * row_bytes, rest);
    cursor->Read(cut.data() + rest, row_bytes - rest);
    visit(cut.data(), 1);
    --rows;
  }
}

}  // namespace

void EncodeRows(WireFormat format, absl::Span<const float* const> rows, int64_t dim, uint8_t* to) {
  for (const float* row : rows) {
    EncodeRow(format, {row, static_cast<size_t>(dim)}, to);
    to += RowBytes(format, dim);
  }
}

void EncodeRows(WireFormat format, absl::Span<const float> matrix, int64_t dim, uint8_t* to) {
  if (format != WireFormat::kInt8) return EncodeElements(format, matrix, to);
  for (size_t first = 0; first < matrix.size(); first += dim) {
    EncodeInt8Row(matrix.subspan(first, dim), to);
    to += RowBytes(format, dim);
  }
}

void DecodeRows(WireFormat format, const uint8_t* from, int64_t dim, absl::Span<float> matrix) {
  if (format != WireFormat::kInt8) return DecodeElements(format, from, matrix);
  for (size_t first = 0; first < matrix.size(); first += dim) {
    DecodeInt8Group(ScaleOf(from), from + sizeof(float), matrix.subspan(first, dim));
    from += RowBytes(format, dim);
  }
}

void TakeRows(WireFormat format, ByteCursor* cursor, int64_t dim, absl::Span<float> matrix) {
  VisitRows(cursor, RowBytes(format, dim), matrix.size() / dim,
            [&](const uint8_t* from, size_t count) {
              DecodeRows(format, from, dim, matrix.first(count * dim));
              matrix.remove_prefix(count * dim);
            });
}

bool TakeFiniteRows(WireFormat format, ByteCursor* cursor, int64_t rows, int64_t dim) {
  bool finite = true;
  VisitRows(cursor, RowBytes(format, dim), rows, [&](const uint8_t* from, size_t count) {
    finite = finite && FiniteRows(format, from, static_cast<int64_t>(count), dim);
  });
  return finite;
}

}  // namespace keelson
