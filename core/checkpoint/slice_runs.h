// Maps the elements of a slice to its tensor: as runs that are contiguous in both, of equal length
// and in the same order. All positions count elements, row-major.
#ifndef KEELSON_CORE_CHECKPOINT_SLICE_RUNS_H_
#define KEELSON_CORE_CHECKPOINT_SLICE_RUNS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/shape.h"

namespace keelson {

// Immutable. Runs are as long as the slice allows: one for rows, one for each row for columns.
class SliceRuns {
 public:
  struct Run {
    int64_t in_tensor;
    int64_t in_slice;
    int64_t length;
  };
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    bool empty() const { return begin == end; }
  };

  // `slice` is resolved, and lies within `shape`.
  SliceRuns(const TensorSliceSpec& slice, const Shape& shape);

  // The elements of the slice that are the tensor's in [begin, end).
  Range Within(int64_t begin, int64_t end) const;
  // Whether a range of the slice that is not empty is contiguous in the tensor too.
  bool IsOneRun(const Range& in_slice) const {
    return in_slice.begin / length_ == (in_slice.end - 1) / length_;
  }
  // Where an element of the slice is in the tensor.
  int64_t InTensor(int64_t in_slice) const {
    return RunInTensor(in_slice / length_) + in_slice % length_;
  }
  // Calls `visit` for each run or part of one that lies in [begin, end) of the tensor, in order.
  void ForEach(int64_t begin, int64_t end, absl::FunctionRef<void(const Run&)> visit) const;

 private:
  // A dimension across which the slice is not contiguous.
  struct Axis {
    int64_t length;
    int64_t stride;
  };

  int64_t RunInTensor(int64_t run) const;
  // The first run that ends after `position`; count_: none.
  int64_t FirstEndingAfter(int64_t position) const;

  std::vector<Axis> axes_;
  int64_t origin_ = 0;
  int64_t length_ = 1;  // of a run
  int64_t count_ = 1;   // 0: the slice is empty
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_SLICE_RUNS_H_
