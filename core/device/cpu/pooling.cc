#include "core/device/cpu/pooling.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace keelson {
namespace {

// Below this many elements waking threads costs more than they save.
constexpr int64_t kMinParallelPooled = 1 << 16;

// The inputs of one output, clipped to the image.
struct Window {
  int64_t top, bottom, left, right;

  int64_t area() const { return (bottom - top) * (right - left); }
};

Window WindowOf(const PoolGeometry& g, int64_t row, int64_t col) {
  const int64_t top = row * g.stride - g.pad_top;
  const int64_t left = col * g.stride - g.pad_left;
  return {std::max<int64_t>(top, 0), std::min(top + g.size, g.in_height),
          std::max<int64_t>(left, 0), std::min(left + g.size, g.in_width)};
}

// Calls at_output(x_base, y, window) for each output pixel; x_base is the example's first input, y
// the first of the pixel's `channels` outputs, both as offsets.
template <typename F>
void ForEachOutput(const PoolGeometry& g, int64_t example, F at_output) {
  const int64_t x_base = example * g.in_height * g.in_width * g.channels;
  int64_t y = example * g.out_height * g.out_width * g.channels;
  for (int64_t row = 0; row < g.out_height; ++row) {
    for (int64_t col = 0; col < g.out_width; ++col, y += g.channels) {
      at_output(x_base, y, WindowOf(g, row, col));
    }
  }
}

// Calls at_input(x) for each input pixel of a window.
template <typename F>
void ForEachInput(const PoolGeometry& g, int64_t x_base, const Window& window, F at_input) {
  for (int64_t row = window.top; row < window.bottom; ++row) {
    for (int64_t col = window.left; col < window.right; ++col) {
      at_input(x_base + (row * g.in_width + col) * g.channels);
    }
  }
}

// Calls f(example) for all of them, shared among the threads.
template <typename F>
void ForEachExample(const PoolGeometry& g, F f) {
#pragma omp parallel for schedule(static)
  for (int64_t example = 0; example < g.batch; ++example) f(example);
}

void ClearExample(const PoolGeometry& g, int64_t example, float* dx) {
  const int64_t size = g.in_height * g.in_width * g.channels;
  std::fill_n(dx + example * size, size, 0.0f);
}

// Not-a-number counts as the maximum, so that it stays visible.
void MaxInto(int64_t n, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] <= y[i] || y[i] != y[i] ? y[i] : x[i];
}

void AddScaled(int64_t n, float scale, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

// Passes the output's gradient to dx where x is the maximum and it has not been passed yet.
void Route(int64_t n, const float* x, const float* y, float* rest, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float given = x[i] == y[i] ? rest[i] : 0.0f;
    dx[i] += given;
    rest[i] = x[i] == y[i] ? 0.0f : rest[i];
  }
}

}  // namespace

void MaxPoolForward(const PoolGeometry& g, const float* x, float* y) {
  ForEachExample(g, [&](int64_t example) {
    ForEachOutput(g, example, [&](int64_t x_base, int64_t out, const Window& window) {
      std::fill_n(y + out, g.channels, -std::numeric_limits<float>::infinity());
      ForEachInput(g, x_base, window, [&](int64_t in) { MaxInto(g.channels, x + in, y + out); });
    });
  });
}

void MaxPoolBackward(const PoolGeometry& g, const float* x, const float* y, const float* dy,
                     float* dx) {
  ForEachExample(g, [&](int64_t example) {
    ClearExample(g, example, dx);
    std::unique_ptr<float[]> rest(new float[g.channels]);
    ForEachOutput(g, example, [&](int64_t x_base, int64_t out, const Window& window) {
      std::copy_n(dy + out, g.channels, rest.get());
      ForEachInput(g, x_base, window,
                   [&](int64_t in) { Route(g.channels, x + in, y + out, rest.get(), dx + in); });
    });
  });
}

void AvgPoolForward(const PoolGeometry& g, const float* x, float* y) {
  ForEachExample(g, [&](int64_t example) {
    ForEachOutput(g, example, [&](int64_t x_base, int64_t out, const Window& window) {
      const float scale = 1.0f / static_cast<float>(window.area());
      std::fill_n(y + out, g.channels, 0.0f);
      ForEachInput(g, x_base, window,
                   [&](int64_t in) { AddScaled(g.channels, scale, x + in, y + out); });
    });
  });
}

void AvgPoolBackward(const PoolGeometry& g, const float* dy, float* dx) {
  ForEachExample(g, [&](int64_t example) {
    ClearExample(g, example, dx);
    ForEachOutput(g, example, [&](int64_t x_base, int64_t out, const Window& window) {
      const float scale = 1.0f / static_cast<float>(window.area());
      ForEachInput(g, x_base, window,
                   [&](int64_t in) { AddScaled(g.channels, scale, dy + out, dx + in); });
    });
  });
}

void GlobalAverage(int64_t rows, int64_t positions, int64_t channels, const float* x, float* y) {
#pragma omp parallel for schedule(static) if (rows * positions * channels >= kMinParallelPooled)
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> sums(channels, 0.0);
    for (int64_t position = 0; position < positions; ++position) {
      const float* in = x + (row * positions + position) * channels;
      double* const sum = sums.data();
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) sum[c] += double{in[c]};
    }
    float* const out = y + row * channels;
    for (int64_t c = 0; c < channels; ++c) {
      out[c] = static_cast<float>(sums[c] / static_cast<double>(positions));
    }
  }
}

void GlobalAverageGradient(int64_t rows, int64_t positions, int64_t channels, const float* dy,
                           float* dx) {
  const float share = 1.0f / static_cast<float>(positions);
#pragma omp parallel for schedule(static) if (rows * positions * channels >= kMinParallelPooled)
  for (int64_t row = 0; row < rows; ++row) {
    const float* gradient = dy + row * channels;
    for (int64_t position = 0; position < positions; ++position) {
      float* const out = dx + (row * positions + position) * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) out[c] = gradient[c] * share;
    }
  }
}

}  // namespace keelson
