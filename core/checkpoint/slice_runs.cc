#include "core/checkpoint/slice_runs.h"

#include <algorithm>

namespace keelson {

SliceRuns::SliceRuns(const TensorSliceSpec& slice, const Shape& shape) {
  bool contiguous = true;
  int64_t stride = 1;
  for (size_t d = shape.rank(); d-- > 0;) {
    const TensorSliceSpec::Extent& extent = slice.extents[d];
    if (contiguous) {
      length_ *= extent.length;
    } else {
      count_ *= extent.length;
      axes_.push_back({extent.length, stride});
    }
    contiguous = contiguous && extent.length == shape.dim(d);
    origin_ += extent.start * stride;
    stride *= shape.dim(d);
  }
  if (length_ == 0) count_ = 0;
}

SliceRuns::Range SliceRuns::Within(int64_t begin, int64_t end) const {
  const int64_t first = FirstEndingAfter(begin);
  if (first == count_ || RunInTensor(first) >= end) return {};
  const auto position = [&](int64_t run, int64_t in_tensor) {
    return run * length_ + std::clamp<int64_t>(in_tensor - RunInTensor(run), 0, length_);
  };
  // The last run that begins before `end` is the first one that ends at or after `end`, if there is
  // one.
  int64_t last = std::min(FirstEndingAfter(end - 1), count_ - 1);
  if (RunInTensor(last) >= end) --last;
  return {position(first, begin), position(last, end)};
}

void SliceRuns::ForEach(int64_t begin, int64_t end,
                        absl::FunctionRef<void(const Run&)> visit) const {
  for (int64_t run = FirstEndingAfter(begin); run < count_; ++run) {
    const int64_t start = RunInTensor(run);
    if (start >= end) return;
    const int64_t from = std::max(start, begin);
    visit({from, run * length_ + from - start, std::min(start + length_, end) - from});
  }
}

int64_t SliceRuns::RunInTensor(int64_t run) const {
  int64_t position = origin_;
  for (const Axis& axis : axes_) {
    position += run % axis.length * axis.stride;
    run /= axis.length;
  }
  return position;
}

int64_t SliceRuns::FirstEndingAfter(int64_t position) const {
  int64_t low = 0;
  int64_t high = count_;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (RunInTensor(middle) + length_ > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace keelson
