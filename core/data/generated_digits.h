// Handwritten-like digits without a download: pen strokes in several styles per digit, distorted,
// drawn with a pen of random width, with noise and stray marks. Hard for a linear classifier (below
// 90 %), within reach of a small convolutional network (above 98 %).
#ifndef KEELSON_CORE_DATA_GENERATED_DIGITS_H_
#define KEELSON_CORE_DATA_GENERATED_DIGITS_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "core/data/dataset.h"
#include "core/data/record_random.h"
#include "core/tensor/shape.h"

namespace keelson {

inline constexpr int kDigitSide = 28;  // pixels
inline constexpr int kDigitPixels = kDigitSide * kDigitSide;
inline constexpr int kDigitClasses = 10;

// The digit that a record shows, 0 to 9. Label and image depend on (seed, split, record) alone.
int DigitLabel(uint64_t seed, DataSplit split, int64_t record);

// Draws the record, bright on dark, row by row.
void DrawDigit(uint64_t seed, DataSplit split, int64_t record,
               absl::Span<uint8_t> pixels /* kDigitPixels */);

// Records [begin, end) of the stream; each is drawn when it is first read and kept.
// `example_shape` must hold kDigitPixels elements.
std::unique_ptr<Dataset> NewGeneratedDigits(uint64_t seed, DataSplit split, int64_t begin,
                                            int64_t end, const Shape& example_shape);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_DIGITS_H_
