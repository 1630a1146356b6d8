// The one interface between a model and the hardware that computes it: memory and about twenty
// coarse operations on float32.
#ifndef KEELSON_CORE_DEVICE_DEVICE_H_
#define KEELSON_CORE_DEVICE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/device/geometry.h"

namespace keelson {

// A block of `size` floats on a device. Freed by the destructor, which waits for operations in
// flight that use it; the Device must still be alive.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // An address on the device: only implementations of Device dereference it.
  float* data() const { return data_; }
  int64_t size() const { return size_; }

 protected:
  DeviceMemory(float* data, int64_t size) : data_(data), size_(size) {}

 private:
  float* const data_;
  const int64_t size_;
};

// Executes operations in the order of the calls. A call may return before its operation is done,
// except CopyToHost and Synchronize. Used by one thread at a time.
//
// Memory may be larger than an operation needs: operations touch the leading elements that their
// extents name, so one allocation serves batches of several sizes. An output must not be an input
// too, unless the operation says that it may. Matrices are row-major, activations [batch, height,
// width, channels], filters [kernel, kernel, in_channels, out_channels].
//
// The first operation that fails leaves its Status behind; the operations after it may do nothing,
// and CopyToHost and Synchronize return that Status from then on. INTERNAL: the device's library
// failed, or a memory is smaller than the extents say. RESOURCE_EXHAUSTED: out of memory.
//
// The same calls on the same device with the same options give bit-identical results.
class Device {
 public:
  virtual ~Device() = default;

  // For logs: "cpu (oneDNN 2.6, 2 threads)".
  virtual std::string name() const = 0;

  // Memory.

  // Zeros. RESOURCE_EXHAUSTED: out of memory.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) = 0;
  // `memory` as the host's code can use it, while no operation that uses it is under way; empty
  // where the host cannot (a GPU's memory).
  virtual absl::Span<float> HostSpan(DeviceMemory* memory) = 0;
  // Into the leading elements of `to`. `from` may be reused when the call returns. Nothing is
  // copied when it is `to`'s own HostSpan.
  virtual void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) = 0;
  // The leading elements of `from`; waits for them. Nothing is copied into `from`'s own HostSpan.
  virtual absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) = 0;
  virtual void Fill(float value, int64_t n, DeviceMemory* x) = 0;
  // Waits for every operation so far.
  virtual absl::Status Synchronize() = 0;

  // Linear algebra.

  // c [m, n] = alpha * op(a) op(b) + beta * c. With beta 0 the old content of c is not read.
  virtual void MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
                      DeviceMemory* c) = 0;
  // y [rows, cols] += bias [cols] in every row.
  virtual void AddBias(int64_t rows, int64_t cols, const DeviceMemory& bias, DeviceMemory* y) = 0;
  // bias_gradient [cols] = sums of the columns of dy [rows, cols].
  virtual void BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                            DeviceMemory* bias_gradient) = 0;
  // y += alpha * x
  virtual void Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) = 0;
  // x *= alpha
  virtual void Scale(float alpha, int64_t n, DeviceMemory* x) = 0;

  // Convolution (cross-correlation, as TensorFlow's conv2d).

  virtual void Conv2D(const ConvGeometry& geometry, const DeviceMemory& x,
                      const DeviceMemory& filter, DeviceMemory* y) = 0;
  virtual void Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                                  const DeviceMemory& dy, DeviceMemory* dx) = 0;
  virtual void Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                                    const DeviceMemory& dy, DeviceMemory* dfilter) = 0;

  // Pooling. Padding is never the maximum and does not count in an average.

  virtual void MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) = 0;
  // Each dy goes to the first input of its window, row by row, that equals the output `y`.
  virtual void MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x,
                               const DeviceMemory& y, const DeviceMemory& dy, DeviceMemory* dx) = 0;
  virtual void AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) = 0;
  virtual void AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                               DeviceMemory* dx) = 0;

  // Element by element.

  // y may be x.
  virtual void Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) = 0;
  // From the output `y` of Activate. ReLU's derivative at 0 is 0. dx may be dy.
  virtual void ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                                const DeviceMemory& dy, DeviceMemory* dx) = 0;
  // y[i] = x[i] / (1 - rate) where element i is kept, else 0. It is kept when
  // UniformFloat(Philox(seed, 0, i / 4)[i % 4]) >= rate (core/base/random.h), so the backward pass
  // is the same call on the gradients. `rate` in [0, 1). y may be x.
  virtual void Dropout(float rate, uint64_t seed, int64_t n, const DeviceMemory& x,
                       DeviceMemory* y) = 0;

  // Losses: the loss of each example, and the gradient of their MEAN with respect to the scores,
  // which is skipped when `dscores` is null.

  // scores [rows, classes]; labels [rows] are whole numbers in [0, classes), which the caller has
  // checked.
  virtual void SoftmaxCrossEntropy(int64_t rows, int64_t classes, const DeviceMemory& scores,
                                   const DeviceMemory& labels, DeviceMemory* losses,
                                   DeviceMemory* dscores) = 0;
  // max(s, 0) - s * label + log(1 + exp(-|s|)); labels in [0, 1].
  virtual void SigmoidCrossEntropy(int64_t rows, const DeviceMemory& scores,
                                   const DeviceMemory& labels, DeviceMemory* losses,
                                   DeviceMemory* dscores) = 0;
  // (s - target)^2
  virtual void MeanSquaredError(int64_t rows, const DeviceMemory& scores,
                                const DeviceMemory& targets, DeviceMemory* losses,
                                DeviceMemory* dscores) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_DEVICE_H_
