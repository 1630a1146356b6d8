#include "core/device/cpu/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "core/device/cpu/element_vectors.h"
#include "core/device/cpu/gate_vectors.h"

namespace keelson {
namespace {

// Below this many elements waking threads costs more than they save.
constexpr int64_t kMinParallel = 1 << 17;

template <typename F>
void Map(int64_t n, F f) {
#pragma omp parallel for simd schedule(static) if (n >= kMinParallel)
  for (int64_t i = 0; i < n; ++i) f(i);
}

// Calls f(first, count) for all elements, blocks of which the threads share.
template <typename F>
void ForEachBlock(int64_t n, F f) {
  constexpr int64_t kBlock = 1 << 14;
  if (n < kMinParallel) return f(0, n);
  const int64_t blocks = (n + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = block * kBlock;
    f(first, std::min(kBlock, n - first));
  }
}

void AddRow(int64_t cols, const float* row, float* sums) {
#pragma omp simd
  for (int64_t col = 0; col < cols; ++col) sums[col] += row[col];
}

// Stable for large |x|.
float Sigmoid(float x) {
  if (x >= 0) return 1.0f / (1.0f + std::exp(-x));
  const float e = std::exp(x);
  return e / (1.0f + e);
}

// Calls f with the activation as a function of one element.
template <typename F>
void WithActivation(ActivationKind kind, F f) {
  switch (kind) {
    case ActivationKind::kRelu:
      // Keeps not-a-number visible.
      return f([](float x) { return x < 0 ? 0.0f : x; });
    case ActivationKind::kTanh:
      return f([](float x) { return std::tanh(x); });
    case ActivationKind::kSigmoid:
      return f(Sigmoid);
  }
}

// y = f(y + bias) of each row.
template <typename F>
void MapBiased(int64_t rows, int64_t cols, const float* bias, float* y, F f) {
#pragma omp parallel for schedule(static) if (rows * cols >= kMinParallel)
  for (int64_t row = 0; row < rows; ++row) {
    float* out = y + row * cols;
#pragma omp simd
    for (int64_t col = 0; col < cols; ++col) out[col] = f(out[col] + bias[col]);
  }
}

}  // namespace

void AddBiasAndActivate(int64_t rows, int64_t cols, const float* bias,
                        std::optional<ActivationKind> activation, float* y) {
  if (bias == nullptr) {
    if (activation.has_value()) ActivationForward(*activation, rows * cols, y, y);
  } else if (activation.has_value()) {
    WithActivation(*activation, [=](auto f) { MapBiased(rows, cols, bias, y, f); });
  } else {
    MapBiased(rows, cols, bias, y, [](float x) { return x; });
  }
}

void SumRows(int64_t rows, int64_t cols, const float* dy, float* sums) {
  constexpr int64_t kBlockRows = 256;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  std::vector<float> partial(blocks * cols, 0.0f);
#pragma omp parallel for schedule(static) if (rows * cols >= kMinParallel)
  for (int64_t block = 0; block < blocks; ++block) {
    float* out = partial.data() + block * cols;
    const int64_t end = std::min(rows, (block + 1) * kBlockRows);
    for (int64_t row = block * kBlockRows; row < end; ++row) AddRow(cols, dy + row * cols, out);
  }
  std::fill_n(sums, cols, 0.0f);
  for (int64_t block = 0; block < blocks; ++block) {
    AddRow(cols, partial.data() + block * cols, sums);
  }
}

void AddScaledTo(float alpha, int64_t n, const float* x, float* y) {
  Map(n, [=](int64_t i) { y[i] += alpha * x[i]; });
}

void ScaleBy(float alpha, int64_t n, float* x) {
  ForEachBlock(n, [=](int64_t first, int64_t count) { ScaleVectors(alpha, count, x + first); });
}

void SumOfTwo(int64_t n, const float* a, const float* b, float* y) {
  ForEachBlock(
      n, [=](int64_t first, int64_t count) { AddVectors(count, a + first, b + first, y + first); });
}

void ProductOfTwo(int64_t n, const float* a, const float* b, float* y) {
  ForEachBlock(n, [=](int64_t first, int64_t count) {
    MultiplyVectors(count, a + first, b + first, y + first);
  });
}

void InverseSquareRoots(int64_t n, float epsilon, const float* x, float* y) {
  Map(n, [=](int64_t i) { y[i] = 1 / std::sqrt(x[i] + epsilon); });
}

void CopyBlock(int64_t rows, int64_t columns, const float* from, int64_t from_columns, float* to,
               int64_t to_columns) {
  if (columns == from_columns && columns == to_columns) {
    // By blocks, since a long memcpy goes around the caches, in which the next operation wants
    // them.
    return ForEachBlock(rows * columns, [=](int64_t first, int64_t count) {
      std::copy_n(from + first, count, to + first);
    });
  }
#pragma omp parallel for schedule(static) if (rows * columns >= kMinParallel)
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * from_columns, columns, to + row * to_columns);
  }
}

void TransposeAxes(const TransposeGeometry& geometry, const float* x, float* y) {
  const int64_t* const in = geometry.extents;
  const int64_t strides[] = {in[1] * in[2], in[2], 1};
  int64_t out[3], steps[3];
  for (int k = 0; k < 3; ++k) {
    out[k] = in[geometry.axes[k]];
    steps[k] = strides[geometry.axes[k]];
  }
  const int64_t example = in[0] * in[1] * in[2];
#pragma omp parallel for collapse(2) schedule(static) if (geometry.size() >= kMinParallel)
  for (int64_t b = 0; b < geometry.batch; ++b) {
    for (int64_t i = 0; i < out[0]; ++i) {
      const float* const from = x + b * example + i * steps[0];
      float* const to = y + b * example + i * out[1] * out[2];
      for (int64_t j = 0; j < out[1]; ++j) {
        for (int64_t k = 0; k < out[2]; ++k) {
          to[j * out[2] + k] = from[j * steps[1] + k * steps[2]];
        }
      }
    }
  }
}

void ActivationForward(ActivationKind kind, int64_t n, const float* x, float* y) {
  if (kind == ActivationKind::kRelu) {
    return ForEachBlock(
        n, [=](int64_t first, int64_t count) { ReluVectors(count, x + first, y + first); });
  }
  WithActivation(kind, [=](auto f) { Map(n, [=](int64_t i) { y[i] = f(x[i]); }); });
}

void ActivationBackward(ActivationKind kind, int64_t n, const float* y, const float* dy,
                        float* dx) {
  switch (kind) {
    case ActivationKind::kRelu:
      return ForEachBlock(n, [=](int64_t first, int64_t count) {
        ReluGradientVectors(count, y + first, dy + first, dx + first);
      });
    case ActivationKind::kTanh:
      return Map(n, [=](int64_t i) { dx[i] = dy[i] * (1.0f - y[i] * y[i]); });
    case ActivationKind::kSigmoid:
      return Map(n, [=](int64_t i) { dx[i] = dy[i] * y[i] * (1.0f - y[i]); });
  }
}

void GateForward(GateKind kind, int64_t n, const float* x, float* y) {
  const auto vectors = kind == GateKind::kGelu ? GeluVectors : SiluVectors;
  ForEachBlock(n, [=](int64_t first, int64_t count) { vectors(count, x + first, y + first); });
}

void GateGradient(GateKind kind, int64_t n, const float* x, const float* dy, float* dx) {
  const auto vectors = kind == GateKind::kGelu ? GeluGradientVectors : SiluGradientVectors;
  ForEachBlock(
      n, [=](int64_t first, int64_t count) { vectors(count, x + first, dy + first, dx + first); });
}

void DropoutForward(float rate, uint64_t seed, uint64_t stream, int64_t n, const float* x,
                    float* y) {
  const float scale = 1.0f / (1.0f - rate);
  const int64_t groups = (n + 3) / 4;
#pragma omp parallel for schedule(static) if (n >= kMinParallel)
  for (int64_t group = 0; group < groups; ++group) {
    const std::array<uint32_t, 4> bits = Philox(seed, stream, static_cast<uint64_t>(group));
    const int64_t first = group * 4;
    const int64_t count = std::min<int64_t>(4, n - first);
    for (int64_t i = 0; i < count; ++i) {
      const bool kept = UniformFloat(bits[i]) >= rate;
      y[first + i] = kept ? x[first + i] * scale : 0.0f;
    }
  }
}

}  // namespace keelson
