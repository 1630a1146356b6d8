// The part of a tensor that one entry of a bundle holds: an interval of every dimension.
// Format: tensorflow/core/framework/tensor_slice.{h,proto}.
#ifndef KEELSON_CORE_CHECKPOINT_TENSOR_SLICE_H_
#define KEELSON_CORE_CHECKPOINT_TENSOR_SLICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor/shape.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

struct TensorSliceSpec {
  // The whole dimension, whatever its size.
  static constexpr int64_t kFullLength = -1;

  struct Extent {
    int64_t start = 0;
    int64_t length = kFullLength;

    int64_t end() const { return start + length; }
    friend bool operator==(const Extent& a, const Extent& b) {
      return a.start == b.start && a.length == b.length;
    }
  };
  // One per dimension, outermost first.
  std::vector<Extent> extents;
};

// Rows [row_begin, row_end) of a tensor, with start and length explicit in every dimension, as
// TensorFlow's Python writes them. `shape` has at least one dimension.
TensorSliceSpec RowSlice(const Shape& shape, int64_t row_begin, int64_t row_end);

// `slice` with the full dimensions made explicit. INVALID_ARGUMENT: it does not lie within
// `shape`; the text has both.
absl::StatusOr<TensorSliceSpec> ResolveSlice(const TensorSliceSpec& slice, const Shape& shape);

// Extent of a resolved slice in each dimension.
Shape SliceShape(const TensorSliceSpec& resolved);

// INVALID_ARGUMENT: the resolved slices overlap or leave a gap, or more than 4096 of them are cut
// in three or more dimensions. Every element of `shape` has to be in exactly one of them. `slices`
// gets sorted by position. Takes n log n time for slices that are cut in one or two dimensions.
absl::Status CheckExactCover(const Shape& shape, std::vector<TensorSliceSpec>* slices);

v1::TensorSlice ToProto(const TensorSliceSpec& slice);
TensorSliceSpec FromProto(const v1::TensorSlice& proto);

v1::TensorShape ToProto(const Shape& shape);
// INVALID_ARGUMENT: a negative dimension, or more than 2^58 elements.
absl::StatusOr<Shape> FromProto(const v1::TensorShape& proto);

// "5,5:0,3" (start,length; "-" for a full dimension), TensorFlow's notation.
std::string ToString(const TensorSliceSpec& slice);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_TENSOR_SLICE_H_
