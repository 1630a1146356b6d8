// Pooling, kPack channels of one pixel at a time.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_POOL_MATH_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_POOL_MATH_H_

#include "core/device/cuda/kernels/window_math.h"

namespace keelson::cuda {

template <typename Index>
Windows<Index> PoolWindowsOf(const PoolGeometry& g, int pack) {
  const Divisor<Index> packs(g.channels / pack);
  return {{Divisor<Index>(g.in_height), Divisor<Index>(g.in_width), packs},
          {Divisor<Index>(g.out_height), Divisor<Index>(g.out_width), packs},
          static_cast<Index>(g.size),
          Divisor<Index>(g.stride),
          static_cast<Index>(g.pad_top),
          static_cast<Index>(g.pad_left)};
}

// Pack `i` of the maxima. Not-a-number counts as the maximum, so that it stays visible.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline Pack<kPack> MaxPoolPack(const Windows<Index>& w, const float* x,
                                                   Index i) {
  const Place<Index> out = PlaceOf(w.out, i);
  const WindowRange<Index> inputs = w.Inputs(out.row, out.column);
  Pack<kPack> largest =
      LoadPack<kPack>(x + OffsetOf<kPack>(w.in, Place<Index>{out.image, inputs.rows.begin,
                                                             inputs.columns.begin, out.pack}));
  for (Index row = inputs.rows.begin; row < inputs.rows.end; ++row) {
    for (Index column = inputs.columns.begin; column < inputs.columns.end; ++column) {
      const Pack<kPack> value = LoadPack<kPack>(
          x + OffsetOf<kPack>(w.in, Place<Index>{out.image, row, column, out.pack}));
      for (int lane = 0; lane < kPack; ++lane) {
        const float v = value.lane[lane];
        if (v > largest.lane[lane] || v != v) largest.lane[lane] = v;
      }
    }
  }
  return largest;
}

// Adds dy to the lanes of `sum` in which `value`, the input at `in`, is the first of its window,
// row by row, that equals the maximum.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline void AddWhereFirstMaximum(const Windows<Index>& w, const float* x,
                                                     Place<Index> in, Pack<kPack> value,
                                                     const WindowRange<Index>& inputs,
                                                     Pack<kPack> maximum, Pack<kPack> dy,
                                                     Pack<kPack>* sum) {
  bool first[kPack], any = false;
  for (int lane = 0; lane < kPack; ++lane) {
    first[lane] = value.lane[lane] == maximum.lane[lane];
    any = any || first[lane];
  }
  if (!any) return;
  for (Index row = inputs.rows.begin; row <= in.row; ++row) {
    const Index end = row == in.row ? in.column : inputs.columns.end;
    for (Index column = inputs.columns.begin; column < end; ++column) {
      const Pack<kPack> before =
          LoadPack<kPack>(x + OffsetOf<kPack>(w.in, Place<Index>{in.image, row, column, in.pack}));
      for (int lane = 0; lane < kPack; ++lane) {
        first[lane] = first[lane] && before.lane[lane] != maximum.lane[lane];
      }
    }
  }
  for (int lane = 0; lane < kPack; ++lane) {
    if (first[lane]) sum->lane[lane] += dy.lane[lane];
  }
}

// Pack `i` of the input's gradient.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline Pack<kPack> MaxPoolGradient(const Windows<Index>& w, const float* x,
                                                       const float* y, const float* dy, Index i) {
  const Place<Index> in = PlaceOf(w.in, i);
  const WindowRange<Index> outputs = w.Outputs(in.row, in.column);
  const Pack<kPack> value = LoadPack<kPack>(x + OffsetOf<kPack>(w.in, in));
  Pack<kPack> sum = {};
  for (Index row = outputs.rows.begin; row < outputs.rows.end; ++row) {
    for (Index column = outputs.columns.begin; column < outputs.columns.end; ++column) {
      const Index out = OffsetOf<kPack>(w.out, Place<Index>{in.image, row, column, in.pack});
      AddWhereFirstMaximum(w, x, in, value, w.Inputs(row, column), LoadPack<kPack>(y + out),
                           LoadPack<kPack>(dy + out), &sum);
    }
  }
  return sum;
}

// Pack `i` of the averages.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline Pack<kPack> AvgPoolPack(const Windows<Index>& w, const float* x,
                                                   Index i) {
  const Place<Index> out = PlaceOf(w.out, i);
  const WindowRange<Index> inputs = w.Inputs(out.row, out.column);
  Pack<kPack> sum = {};
  for (Index row = inputs.rows.begin; row < inputs.rows.end; ++row) {
    for (Index column = inputs.columns.begin; column < inputs.columns.end; ++column) {
      const Pack<kPack> value = LoadPack<kPack>(
          x + OffsetOf<kPack>(w.in, Place<Index>{out.image, row, column, out.pack}));
      for (int lane = 0; lane < kPack; ++lane) sum.lane[lane] += value.lane[lane];
    }
  }
  const auto size = static_cast<float>(inputs.size());
  for (int lane = 0; lane < kPack; ++lane) sum.lane[lane] /= size;
  return sum;
}

// Pack `i` of the input's gradient.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline Pack<kPack> AvgPoolGradient(const Windows<Index>& w, const float* dy,
                                                       Index i) {
  const Place<Index> in = PlaceOf(w.in, i);
  const WindowRange<Index> outputs = w.Outputs(in.row, in.column);
  Pack<kPack> sum = {};
  for (Index row = outputs.rows.begin; row < outputs.rows.end; ++row) {
    for (Index column = outputs.columns.begin; column < outputs.columns.end; ++column) {
      const Pack<kPack> of_output = LoadPack<kPack>(
          dy + OffsetOf<kPack>(w.out, Place<Index>{in.image, row, column, in.pack}));
      const auto size = static_cast<float>(w.Inputs(row, column).size());
      for (int lane = 0; lane < kPack; ++lane) sum.lane[lane] += of_output.lane[lane] / size;
    }
  }
  return sum;
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_POOL_MATH_H_
