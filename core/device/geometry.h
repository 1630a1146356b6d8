// Extents of a device's operations.
#ifndef KEELSON_CORE_DEVICE_GEOMETRY_H_
#define KEELSON_CORE_DEVICE_GEOMETRY_H_

#include <cstdint>

namespace keelson {

enum class ActivationKind { kRelu, kTanh, kSigmoid };

// Activations x * p(x), where p grows from 0 to 1.
enum class GateKind {
  // p is the standard normal distribution function, exactly: (1 + erf(x / sqrt(2))) / 2. Source:
  // Hendrycks and Gimpel, "Gaussian error linear units", 2016.
  kGelu,
  // p is the logistic function 1 / (1 + exp(-x)). Source: Elfwing, Uchibe and Doya,
  // "Sigmoid-weighted linear units for neural network function approximation in reinforcement
  // learning", Neural Networks 107, 2018.
  kSilu,
};

// c [m, n] = alpha * op(a) op(b) + beta * c, op(a) [m, k], op(b) [k, n], without gaps between rows.
// A transposed operand is stored the other way round: a [k, m], b [n, k].
struct MatMulArgs {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 0;
};

// The pairs of the vectors of x [rows, vectors, dim]: of each row (i, j) with i < j, with
// `diagonal` also i = j, in the order of i, and of j where i is the same.
struct PairGeometry {
  int64_t rows = 0;
  int64_t vectors = 0;
  int64_t dim = 0;
  bool diagonal = false;

  // The number of inner products that one row has.
  int64_t pairs() const { return vectors * (diagonal ? vectors + 1 : vectors - 1) / 2; }
};

// x [batch, extents...] becomes y, whose axis k after the batch is axis axes[k] of x. `axes` are 0,
// 1 and 2 in any order.
struct TransposeGeometry {
  int64_t batch = 0;
  int64_t extents[3] = {1, 1, 1};
  int axes[3] = {0, 1, 2};

  int64_t size() const { return batch * extents[0] * extents[1] * extents[2]; }
};

// Padding is given at the start of each axis; at the end there is as much as the output's extent
// needs, so the two sides may differ (TensorFlow's SAME). No window lies in the padding alone.
struct ConvGeometry {
  int64_t batch = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t in_channels = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t out_channels = 0;
  int64_t kernel = 0;
  int64_t stride = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;

  int64_t in_size() const { return batch * in_height * in_width * in_channels; }
  int64_t out_size() const { return batch * out_height * out_width * out_channels; }
  int64_t filter_size() const { return kernel * kernel * in_channels * out_channels; }
  // May be negative where the last window ends before the input does.
  int64_t pad_bottom() const { return (out_height - 1) * stride + kernel - in_height - pad_top; }
  int64_t pad_right() const { return (out_width - 1) * stride + kernel - in_width - pad_left; }

  friend bool operator==(const ConvGeometry&, const ConvGeometry&) = default;
};

struct PoolGeometry {
  int64_t batch = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t channels = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t size = 0;
  int64_t stride = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;

  int64_t in_size() const { return batch * in_height * in_width * channels; }
  int64_t out_size() const { return batch * out_height * out_width * channels; }

  friend bool operator==(const PoolGeometry&, const PoolGeometry&) = default;
};

struct BatchNormGeometry {
  int64_t rows = 0;
  int64_t channels = 0;
  float epsilon = 1e-3f;
};

// Each row is normalized over its features, which are > 0.
struct LayerNormGeometry {
  int64_t rows = 0;
  int64_t features = 0;
  float epsilon = 1e-5f;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_GEOMETRY_H_
