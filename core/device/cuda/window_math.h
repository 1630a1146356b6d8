// Windows of convolution and pooling: which input elements an output sees, and which outputs an
// input element is seen by. Gradients are gathered per input element, so that no two threads write
// to the same place and the order of every sum is fixed.
#ifndef KEELSON_CORE_DEVICE_CUDA_WINDOW_MATH_H_
#define KEELSON_CORE_DEVICE_CUDA_WINDOW_MATH_H_

#include <cstdint>

#include "core/device/cuda/host_device.h"
#include "core/device/geometry.h"

namespace keelson::cuda {

// [begin, end) along one axis.
struct AxisRange {
  int64_t begin;
  int64_t end;
};

// Inputs, padding left out, in the window of output `out`.
KEELSON_HOST_DEVICE inline AxisRange InputsOf(int64_t out, int64_t size, int64_t stride,
                                              int64_t pad, int64_t in_extent) {
  const int64_t begin = out * stride - pad, end = begin + size;
  return {begin < 0 ? 0 : begin, end > in_extent ? in_extent : end};
}

// Outputs whose window holds input `in`.
KEELSON_HOST_DEVICE inline AxisRange OutputsOf(int64_t in, int64_t size, int64_t stride,
                                               int64_t pad, int64_t out_extent) {
  const int64_t padded = in + pad, end = padded / stride + 1;
  return {padded < size ? 0 : (padded - size) / stride + 1, end > out_extent ? out_extent : end};
}

// A place in activations [batch, height, width, channels].
struct Place {
  int64_t image;
  int64_t row;
  int64_t column;
  int64_t channel;
};

KEELSON_HOST_DEVICE inline Place PlaceOf(int64_t i, int64_t height, int64_t width,
                                         int64_t channels) {
  const int64_t pixel = i / channels, line = pixel / width;
  return {line / height, line % height, pixel % width, i % channels};
}

KEELSON_HOST_DEVICE inline int64_t IndexOf(Place p, int64_t height, int64_t width,
                                           int64_t channels) {
  return ((p.image * height + p.row) * width + p.column) * channels + p.channel;
}

// Convolution as a product: the columns [batch * out_height * out_width, kernel * kernel *
// in_channels] hold the window of each output pixel in one row, in the order of a filter.

// Element `i` of the columns: 0 in the padding.
KEELSON_HOST_DEVICE inline float ColumnsElement(const ConvGeometry& g, const float* x, int64_t i) {
  const int64_t window = g.kernel * g.kernel * g.in_channels;
  const Place out = PlaceOf(i / window, g.out_height, g.out_width, 1);
  const Place tap = PlaceOf(i % window, g.kernel, g.kernel, g.in_channels);
  const int64_t row = out.row * g.stride - g.pad_top + tap.row;
  const int64_t column = out.column * g.stride - g.pad_left + tap.column;
  if (row < 0 || row >= g.in_height || column < 0 || column >= g.in_width) return 0.0f;
  return x[IndexOf({out.image, row, column, tap.channel}, g.in_height, g.in_width, g.in_channels)];
}

// Element `i` of the input's gradient: the sum of its copies in the columns' gradient.
KEELSON_HOST_DEVICE inline float ColumnsGradient(const ConvGeometry& g, const float* dcolumns,
                                                 int64_t i) {
  const Place in = PlaceOf(i, g.in_height, g.in_width, g.in_channels);
  const AxisRange rows = OutputsOf(in.row, g.kernel, g.stride, g.pad_top, g.out_height);
  const AxisRange columns = OutputsOf(in.column, g.kernel, g.stride, g.pad_left, g.out_width);
  float sum = 0.0f;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t c = columns.begin; c < columns.end; ++c) {
      const int64_t pixel = IndexOf({in.image, r, c, 0}, g.out_height, g.out_width, 1);
      const Place tap = {0, in.row + g.pad_top - r * g.stride,
                         in.column + g.pad_left - c * g.stride, in.channel};
      sum += dcolumns[pixel * g.kernel * g.kernel * g.in_channels +
                      IndexOf(tap, g.kernel, g.kernel, g.in_channels)];
    }
  }
  return sum;
}

// Inputs in the window of one pooled output.
struct PoolWindow {
  AxisRange rows;
  AxisRange columns;
  KEELSON_HOST_DEVICE int64_t size() const {
    return (rows.end - rows.begin) * (columns.end - columns.begin);
  }
};

KEELSON_HOST_DEVICE inline PoolWindow PoolInputsOf(const PoolGeometry& g, int64_t out_row,
                                                   int64_t out_column) {
  return {InputsOf(out_row, g.size, g.stride, g.pad_top, g.in_height),
          InputsOf(out_column, g.size, g.stride, g.pad_left, g.in_width)};
}

// Outputs whose window holds one input.
KEELSON_HOST_DEVICE inline PoolWindow PoolOutputsOf(const PoolGeometry& g, int64_t in_row,
                                                    int64_t in_column) {
  return {OutputsOf(in_row, g.size, g.stride, g.pad_top, g.out_height),
          OutputsOf(in_column, g.size, g.stride, g.pad_left, g.out_width)};
}

KEELSON_HOST_DEVICE inline int64_t PoolInputIndex(const PoolGeometry& g, Place p) {
  return IndexOf(p, g.in_height, g.in_width, g.channels);
}

KEELSON_HOST_DEVICE inline int64_t PoolOutputIndex(const PoolGeometry& g, Place p) {
  return IndexOf(p, g.out_height, g.out_width, g.channels);
}

// Element `i` of the maxima. Not-a-number wins, so that it stays visible.
KEELSON_HOST_DEVICE inline float MaxPoolElement(const PoolGeometry& g, const float* x, int64_t i) {
  const Place out = PlaceOf(i, g.out_height, g.out_width, g.channels);
  const PoolWindow window = PoolInputsOf(g, out.row, out.column);
  float largest =
      x[PoolInputIndex(g, {out.image, window.rows.begin, window.columns.begin, out.channel})];
  for (int64_t r = window.rows.begin; r < window.rows.end; ++r) {
    for (int64_t c = window.columns.begin; c < window.columns.end; ++c) {
      const float value = x[PoolInputIndex(g, {out.image, r, c, out.channel})];
      if (value > largest || value != value) largest = value;
    }
  }
  return largest;
}

// Whether `in` is the first input of its window, row by row, that equals the maximum.
KEELSON_HOST_DEVICE inline bool IsFirstMaximum(const PoolGeometry& g, const float* x, float maximum,
                                               const PoolWindow& window, Place in) {
  if (x[PoolInputIndex(g, in)] != maximum) return false;
  for (int64_t r = window.rows.begin; r <= in.row; ++r) {
    const int64_t end = r == in.row ? in.column : window.columns.end;
    for (int64_t c = window.columns.begin; c < end; ++c) {
      if (x[PoolInputIndex(g, {in.image, r, c, in.channel})] == maximum) return false;
    }
  }
  return true;
}

// Element `i` of the input's gradient.
KEELSON_HOST_DEVICE inline float MaxPoolGradient(const PoolGeometry& g, const float* x,
                                                 const float* y, const float* dy, int64_t i) {
  const Place in = PlaceOf(i, g.in_height, g.in_width, g.channels);
  const PoolWindow outputs = PoolOutputsOf(g, in.row, in.column);
  float sum = 0.0f;
  for (int64_t r = outputs.rows.begin; r < outputs.rows.end; ++r) {
    for (int64_t c = outputs.columns.begin; c < outputs.columns.end; ++c) {
      const int64_t out = PoolOutputIndex(g, {in.image, r, c, in.channel});
      if (IsFirstMaximum(g, x, y[out], PoolInputsOf(g, r, c), in)) sum += dy[out];
    }
  }
  return sum;
}

// Element `i` of the averages.
KEELSON_HOST_DEVICE inline float AvgPoolElement(const PoolGeometry& g, const float* x, int64_t i) {
  const Place out = PlaceOf(i, g.out_height, g.out_width, g.channels);
  const PoolWindow window = PoolInputsOf(g, out.row, out.column);
  float sum = 0.0f;
  for (int64_t r = window.rows.begin; r < window.rows.end; ++r) {
    for (int64_t c = window.columns.begin; c < window.columns.end; ++c) {
      sum += x[PoolInputIndex(g, {out.image, r, c, out.channel})];
    }
  }
  return sum / static_cast<float>(window.size());
}

// Element `i` of the input's gradient.
KEELSON_HOST_DEVICE inline float AvgPoolGradient(const PoolGeometry& g, const float* dy,
                                                 int64_t i) {
  const Place in = PlaceOf(i, g.in_height, g.in_width, g.channels);
  const PoolWindow outputs = PoolOutputsOf(g, in.row, in.column);
  float sum = 0.0f;
  for (int64_t r = outputs.rows.begin; r < outputs.rows.end; ++r) {
    for (int64_t c = outputs.columns.begin; c < outputs.columns.end; ++c) {
      sum += dy[PoolOutputIndex(g, {in.image, r, c, in.channel})] /
             static_cast<float>(PoolInputsOf(g, r, c).size());
    }
  }
  return sum;
}

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_WINDOW_MATH_H_
