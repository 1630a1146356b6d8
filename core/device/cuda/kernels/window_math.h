// Windows of convolution and pooling: the input elements of an output, and the outputs of an input
// element. Gradients are gathered per input element, so that no two threads write to the same place
// and the order of every sum is fixed. An Index is int32_t where all arrays are small enough, else
// int64_t; kPack channels are taken at once.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_WINDOW_MATH_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_WINDOW_MATH_H_

#include "core/device/cuda/kernels/divisor.h"
#include "core/device/cuda/kernels/host_device.h"
#include "core/device/geometry.h"

namespace keelson::cuda {

// [begin, end) along one axis.
template <typename Index>
struct AxisRange {
  Index begin;
  Index end;
};

// Inputs, padding left out, in the window of output `out`.
template <typename Index>
KEELSON_HOST_DEVICE inline AxisRange<Index> InputsOf(Index out, Index size,
                                                     const Divisor<Index>& stride, Index pad,
                                                     Index in_extent) {
  const Index begin = out * stride.value() - pad, end = begin + size;
  return {begin < 0 ? 0 : begin, end > in_extent ? in_extent : end};
}

// Outputs whose window holds input `in`.
template <typename Index>
KEELSON_HOST_DEVICE inline AxisRange<Index> OutputsOf(Index in, Index size,
                                                      const Divisor<Index>& stride, Index pad,
                                                      Index out_extent) {
  const Index padded = in + pad, end = stride.Divide(padded) + 1;
  return {padded < size ? 0 : stride.Divide(padded - size) + 1,
          end > out_extent ? out_extent : end};
}

template <typename Index>
struct WindowRange {
  AxisRange<Index> rows;
  AxisRange<Index> columns;
  KEELSON_HOST_DEVICE Index size() const {
    return (rows.end - rows.begin) * (columns.end - columns.begin);
  }
};

// One side of windows, [batch, height, width, packs of channels].
template <typename Index>
struct Plane {
  Divisor<Index> height;
  Divisor<Index> width;
  Divisor<Index> packs;
};

template <typename Index>
struct Place {
  Index image;
  Index row;
  Index column;
  Index pack;
};

// The place of pack `i`, in the order of memory.
template <typename Index>
KEELSON_HOST_DEVICE inline Place<Index> PlaceOf(const Plane<Index>& plane, Index i) {
  const auto pixel = DivideBy(plane.packs, i);
  const auto line = DivideBy(plane.width, pixel.quotient);
  const auto image = DivideBy(plane.height, line.quotient);
  return {image.quotient, image.remainder, line.remainder, pixel.remainder};
}

// The index of the place's first element.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline Index OffsetOf(const Plane<Index>& plane, Place<Index> p) {
  const Index line = p.image * plane.height.value() + p.row;
  return ((line * plane.width.value() + p.column) * plane.packs.value() + p.pack) * kPack;
}

// Square windows from an input plane to an output plane.
template <typename Index>
struct Windows {
  Plane<Index> in;
  Plane<Index> out;
  Index size;
  Divisor<Index> stride;
  Index pad_top;
  Index pad_left;

  KEELSON_HOST_DEVICE WindowRange<Index> Inputs(Index out_row, Index out_column) const {
    return {InputsOf(out_row, size, stride, pad_top, in.height.value()),
            InputsOf(out_column, size, stride, pad_left, in.width.value())};
  }
  KEELSON_HOST_DEVICE WindowRange<Index> Outputs(Index in_row, Index in_column) const {
    return {OutputsOf(in_row, size, stride, pad_top, out.height.value()),
            OutputsOf(in_column, size, stride, pad_left, out.width.value())};
  }
};

// A convolution as a product: the columns [batch * out_height * out_width, kernel * kernel *
// in_channels] hold the window of each output pixel in one row, in the order of a filter.
template <typename Index>
struct ColumnWindows {
  Windows<Index> windows;  // the output has one channel
  Plane<Index> taps;       // [kernel, kernel, packs of in_channels]
  Divisor<Index> row;      // packs in a row of the columns
};

template <typename Index>
ColumnWindows<Index> ColumnWindowsOf(const ConvGeometry& g, int pack) {
  const auto size = static_cast<Index>(g.kernel);
  const Divisor<Index> packs(g.in_channels / pack), one(1), kernel(g.kernel);
  return {{{Divisor<Index>(g.in_height), Divisor<Index>(g.in_width), packs},
           {Divisor<Index>(g.out_height), Divisor<Index>(g.out_width), one},
           size,
           Divisor<Index>(g.stride),
           static_cast<Index>(g.pad_top),
           static_cast<Index>(g.pad_left)},
          {kernel, kernel, packs},
          Divisor<Index>(g.kernel * g.kernel * g.in_channels / pack)};
}

// A place in the columns.
template <typename Index>
struct ColumnPlace {
  Place<Index> out;
  Place<Index> tap;
};

// The place of pack `i` of the columns.
template <typename Index>
KEELSON_HOST_DEVICE inline ColumnPlace<Index> ColumnPlaceOf(const ColumnWindows<Index>& c,
                                                            Index i) {
  const auto row = DivideBy(c.row, i);
  return {PlaceOf(c.windows.out, row.quotient), PlaceOf(c.taps, row.remainder)};
}

// Moves to the next pack.
template <typename Index>
KEELSON_HOST_DEVICE inline void Advance(const ColumnWindows<Index>& c, ColumnPlace<Index>* place) {
  Place<Index>& tap = place->tap;
  Place<Index>& out = place->out;
  if (++tap.pack < c.taps.packs.value()) return;
  tap.pack = 0;
  if (++tap.column < c.windows.size) return;
  tap.column = 0;
  if (++tap.row < c.windows.size) return;
  tap.row = 0;
  if (++out.column < c.windows.out.width.value()) return;
  out.column = 0;
  if (++out.row < c.windows.out.height.value()) return;
  out.row = 0;
  ++out.image;
}

// The element of the columns at `place`: 0 in the padding.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline Pack<kPack> ColumnsPack(const ColumnWindows<Index>& c, const float* x,
                                                   const ColumnPlace<Index>& place) {
  const Windows<Index>& w = c.windows;
  const Index row = place.out.row * w.stride.value() - w.pad_top + place.tap.row;
  const Index column = place.out.column * w.stride.value() - w.pad_left + place.tap.column;
  if (row < 0 || row >= w.in.height.value() || column < 0 || column >= w.in.width.value()) {
    return Pack<kPack>{};
  }
  return LoadPack<kPack>(
      x + OffsetOf<kPack>(w.in, Place<Index>{place.out.image, row, column, place.tap.pack}));
}

// Pack `i` of the input's gradient: the sum of its copies in the columns' gradient.
template <int kPack, typename Index>
KEELSON_HOST_DEVICE inline Pack<kPack> ColumnsGradient(const ColumnWindows<Index>& c,
                                                       const float* dcolumns, Index i) {
  const Windows<Index>& w = c.windows;
  const Place<Index> in = PlaceOf(w.in, i);
  const WindowRange<Index> outputs = w.Outputs(in.row, in.column);
  Pack<kPack> sum = {};
  for (Index row = outputs.rows.begin; row < outputs.rows.end; ++row) {
    for (Index column = outputs.columns.begin; column < outputs.columns.end; ++column) {
      const Index pixel = OffsetOf<1>(w.out, Place<Index>{in.image, row, column, 0});
      const Place<Index> tap = {0, in.row + w.pad_top - row * w.stride.value(),
                                in.column + w.pad_left - column * w.stride.value(), in.pack};
      const Pack<kPack> copy =
          LoadPack<kPack>(dcolumns + pixel * c.row.value() * kPack + OffsetOf<kPack>(c.taps, tap));
      for (int lane = 0; lane < kPack; ++lane) sum.lane[lane] += copy.lane[lane];
    }
  }
  return sum;
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_WINDOW_MATH_H_
