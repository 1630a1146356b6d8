// The one interface between a model and the hardware that computes it: memory, coarse operations on
// float32, and the transfer of values and gradients between the device and the wire.
#ifndef KEELSON_CORE_DEVICE_DEVICE_H_
#define KEELSON_CORE_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/geometry.h"
#include "core/wire/wire_layout.h"

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
  // The same address, for operations on a memory of integers (CopyIntegersToDevice).
  const int32_t* integers() const { return reinterpret_cast<const int32_t*>(data_); }
  int64_t size() const { return size_; }

 protected:
  DeviceMemory(float* data, int64_t size) : data_(data), size_(size) {}

 private:
  float* const data_;
  const int64_t size_;
};

// Bytes of the host that a device copies from and to by itself (page-locked, for a GPU), aligned to
// 64 bytes. The Device must outlive them, and no copy from or to them may be under way when they
// are destroyed. Any thread may read and write them.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  absl::Span<uint8_t> bytes() const { return bytes_; }

 protected:
  explicit HostMemory(absl::Span<uint8_t> bytes) : bytes_(bytes) {}

 private:
  const absl::Span<uint8_t> bytes_;
};

// A point in a device's work at which the event was recorded; one never recorded has passed.
// Belongs to one device, which must outlive it.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;

 protected:
  DeviceEvent() = default;
};

// A device's state to encode one variable's gradients, or to decode its values: error feedback
// (zeros at first) and memory for the bytes. Belongs to one device, which must outlive it.
class GradientEncoder {
 public:
  virtual ~GradientEncoder() = default;

 protected:
  GradientEncoder() = default;
};
class ValueDecoder {
 public:
  virtual ~ValueDecoder() = default;

 protected:
  ValueDecoder() = default;
};

// The operations on each element of a product before it is stored: first the bias [columns] is
// added, then the activation is applied.
struct Epilogue {
  const DeviceMemory* bias = nullptr;
  std::optional<ActivationKind> activation = std::nullopt;
};

// A matrix of few entries, by rows, of which those are stored that an operation shall compute. Its
// numbers are read on the device when the operation runs, so that a repeated operation finds those
// that its memories have by then. Integers are 32-bit whole numbers; the caller has checked that
// the arrays fit each other and the operands.
struct SparseRows {
  // The most rows that may be stored: `rows` and `offsets` have room for them.
  int64_t capacity = 0;
  // [1] integer: how many rows are stored, from 0 to `capacity`.
  const DeviceMemory* stored = nullptr;
  // [stored] integers: which row of the result each of them is, ascending, no two the same.
  const DeviceMemory* rows = nullptr;
  // [stored + 1] integers from 0 on: stored row k has entries [offsets[k], offsets[k + 1]).
  const DeviceMemory* offsets = nullptr;
  // [entries] integers: the entry's column, a row of the other factor. Columns may be repeated.
  const DeviceMemory* columns = nullptr;
  // [entries] floats.
  const DeviceMemory* coefficients = nullptr;
};

// Executes operations in the order of the calls. A call may return before its operation is done,
// except CopyToHost, Await and Synchronize. Used by one thread at a time.
//
// Upload and Download run beside the operations: a Download waits for the operations before it, and
// an operation that needs uploaded data waits for the Upload's event. Copies in one direction are
// executed in the order of their calls.
//
// Memory may be larger than an operation needs: operations touch the leading elements that their
// extents name, so one allocation serves batches of several sizes. An output must not be an input
// too, unless the operation says that it may. Matrices are row-major, activations [batch, height,
// width, channels], filters [kernel, kernel, in_channels, out_channels].
//
// The first operation that fails sets the device's Status; the operations after it may do nothing,
// and CopyToHost, Await and Synchronize return that Status from then on. INTERNAL: the device's
// library failed, or a memory is smaller than the extents say. RESOURCE_EXHAUSTED: out of memory.
//
// The same calls on the same device with the same options give bit-identical results.
class Device {
 public:
  virtual ~Device() = default;

  // For logs: "cpu (oneDNN 2.6, 2 threads)".
  virtual std::string name() const = 0;
  // Whether calls return before their operations are done. False: every event that was recorded has
  // passed when Record returns.
  virtual bool asynchronous() const = 0;

  // Memory.

  // Zeros. RESOURCE_EXHAUSTED: out of memory.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) = 0;
  // Undefined content. RESOURCE_EXHAUSTED: out of memory.
  virtual absl::StatusOr<std::unique_ptr<HostMemory>> AllocateHost(size_t bytes) = 0;
  // `memory` as the host's code can use it, while no operation that uses it is under way; empty
  // where the host cannot (a GPU's memory).
  virtual absl::Span<float> HostSpan(DeviceMemory* memory) = 0;
  // Copies to the leading elements of `to`. `from` may be reused when the call returns. Nothing is
  // copied when it is `to`'s own HostSpan.
  virtual void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) = 0;
  // The same of 32-bit whole numbers, each in place of a float: operations that say that a memory
  // has integers read them.
  virtual void CopyIntegersToDevice(absl::Span<const int32_t> from, DeviceMemory* to) = 0;
  // Copies the leading elements of `from`; waits for them. Nothing is copied into `from`'s own
  // HostSpan.
  virtual absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) = 0;
  virtual void Fill(float value, int64_t n, DeviceMemory* x) = 0;
  // Waits for every operation and copy so far.
  virtual absl::Status Synchronize() = 0;
  // The Status of the first operation that has failed so far. Does not wait.
  virtual absl::Status status() const = 0;

  // Events.

  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent() = 0;
  // `event` passes when the operations so far are done.
  virtual void Record(DeviceEvent* event) = 0;
  // The operations after this call wait until `event`, as it was recorded last, has passed.
  virtual void WaitFor(const DeviceEvent& event) = 0;
  // Whether `event`, as it was recorded last, has passed. Does not wait. After a failure: true.
  virtual bool Passed(const DeviceEvent& event) = 0;
  // Waits until it has passed.
  virtual absl::Status Await(const DeviceEvent& event) = 0;
  // The time from one event to another, both of which have passed.
  virtual double MillisecondsBetween(const DeviceEvent& from, const DeviceEvent& to) = 0;

  // Between the device and the wire.

  // RESOURCE_EXHAUSTED: out of memory.
  virtual absl::StatusOr<std::unique_ptr<GradientEncoder>> NewGradientEncoder(
      const WireLayout& layout) = 0;
  virtual absl::StatusOr<std::unique_ptr<ValueDecoder>> NewValueDecoder(WireFormat format,
                                                                        int64_t elements) = 0;
  // Encodes the gradient, bit by bit as core/wire/value_codec.h does, into `to`, which is (a part
  // of) a HostMemory, from a multiple of 4 bytes on, of as many bytes as the layout. `done` passes
  // when the bytes are written and `gradient` may be modified again. With a `gate` whose first
  // element is not finite by then, `to` becomes undefined and error feedback does not change. `to`
  // must not be modified until `done`.
  virtual void Download(const DeviceMemory& gradient, const DeviceMemory* gate,
                        GradientEncoder* encoder, absl::Span<uint8_t> to, DeviceEvent* done) = 0;
  // Decodes `from`, (a part of) a HostMemory. Begins when `after`, as it was recorded last, has
  // passed; null: when the operations so far are done. Operations that need `to` wait for `done`.
  // `from` must not be modified until `done`.
  virtual void Upload(absl::Span<const uint8_t> from, const DeviceEvent* after,
                      ValueDecoder* decoder, DeviceMemory* to, DeviceEvent* done) = 0;

  // Repetition.

  // Calls `operations`, or repeats the calls that it made the last time with this `key`. Its calls
  // must depend on nothing but `key`, the contents of memories and the seed; they may only be
  // computations on this device alone, Fill, Record, WaitFor and Download. Whenever memory of this
  // device is freed, all keys are forgotten.
  virtual void Repeat(uint64_t key, absl::FunctionRef<void()> operations) = 0;

  // Linear algebra.

  // c [m, n] = alpha * op(a) op(b) + beta * c, and the epilogue on it. With beta 0 the old content
  // of c is not read.
  virtual void MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
                      const Epilogue& epilogue, DeviceMemory* c) = 0;
  // The gradients of y = x kernel + bias: kernel_gradient [inputs, units] = x^T dy, and unless it
  // is null bias_gradient [units] = sums of the columns of dy. x [rows, inputs], dy [rows, units].
  virtual void DenseGradients(int64_t rows, int64_t inputs, int64_t units, const DeviceMemory& x,
                              const DeviceMemory& dy, DeviceMemory* kernel_gradient,
                              DeviceMemory* bias_gradient) = 0;
  // bias_gradient [cols] = sums of the columns of dy [rows, cols].
  virtual void BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                            DeviceMemory* bias_gradient) = 0;
  // y[a.rows[k]][j] = beta * y[a.rows[k]][j] + the sum of a.coefficients[i] * x[a.columns[i]][j]
  // over the entries i of stored row k, which are added to each other in their order; 0 without
  // entries. With beta 0 the old content of y is not read. x and y [any, width]; rows of y that are
  // not stored keep their content. With rows of ids it is the forward pass of a bag of embeddings,
  // and with the transposed matrix the gradient of its table. The entries of one row are added one
  // after the other, so a row of very many (an id that every record has) may take the longest.
  virtual void MultiplySparse(const SparseRows& a, int64_t width, const DeviceMemory& x, float beta,
                              DeviceMemory* y) = 0;
  // y += alpha * x
  virtual void Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) = 0;
  // x *= alpha
  virtual void Scale(float alpha, int64_t n, DeviceMemory* x) = 0;
  // sum [1] = sum of the elements of x [n].
  virtual void Sum(int64_t n, const DeviceMemory& x, DeviceMemory* sum) = 0;
  // Scales all `gradients`, whole memories, by max_norm / norm when their joint Euclidean norm is
  // greater than `max_norm`, which is > 0. A norm that is not finite leaves them as they are.
  // Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks",
  // ICML 2013.
  virtual void ClipByGlobalNorm(float max_norm, absl::Span<DeviceMemory* const> gradients) = 0;
  // y += x, which is memory of `peer`, another device of the same kind: after the peer's operations
  // so far, and the peer's operations after this call wait for it.
  virtual void AddFromPeer(Device* peer, int64_t n, const DeviceMemory& x, DeviceMemory* y) = 0;

  // Convolution (cross-correlation, as TensorFlow's conv2d).

  virtual void Conv2D(const ConvGeometry& geometry, const DeviceMemory& x,
                      const DeviceMemory& filter, const Epilogue& epilogue, DeviceMemory* y) = 0;
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

  // y [rows, channels] = means of x [rows, positions, channels] over the positions, which are > 0.
  virtual void GlobalAveragePool(int64_t rows, int64_t positions, int64_t channels,
                                 const DeviceMemory& x, DeviceMemory* y) = 0;
  // dx of each position = dy / positions. dx [rows, positions, channels], dy [rows, channels].
  virtual void GlobalAveragePoolBackward(int64_t rows, int64_t positions, int64_t channels,
                                         const DeviceMemory& dy, DeviceMemory* dx) = 0;

  // Element by element.

  // y = a + b. y may be a or b, or both.
  virtual void Add(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) = 0;
  // y = a * b. y may be a or b, or both.
  virtual void Multiply(int64_t n, const DeviceMemory& a, const DeviceMemory& b,
                        DeviceMemory* y) = 0;
  // y = 1 / sqrt(x + epsilon). y may be x.
  virtual void InverseSquareRoot(int64_t n, float epsilon, const DeviceMemory& x,
                                 DeviceMemory* y) = 0;
  // y may be x.
  virtual void Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) = 0;
  // Computes dx from the output `y` of Activate. ReLU's derivative at 0 is 0. dx may be dy.
  virtual void ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                                const DeviceMemory& dy, DeviceMemory* dx) = 0;
  // y = x * p(x). y may be x, but GateBackward needs x.
  virtual void Gate(GateKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) = 0;
  // dx = dy * (p(x) + x * p'(x)), from the input `x` of Gate. dx may be dy.
  virtual void GateBackward(GateKind kind, int64_t n, const DeviceMemory& x, const DeviceMemory& dy,
                            DeviceMemory* dx) = 0;
  // Sets the seed of later calls of Dropout, including repeated ones.
  virtual void SetSeed(uint64_t seed) = 0;
  // y[i] = x[i] / (1 - rate) where element i is kept, else 0. It is kept when
  // UniformFloat(Philox(seed, stream, i / 4)[i % 4]) >= rate (core/base/random.h), so the backward
  // pass is the same call on the gradients. `rate` in [0, 1). y may be x.
  virtual void Dropout(float rate, uint64_t stream, int64_t n, const DeviceMemory& x,
                       DeviceMemory* y) = 0;

  // Columns of matrices: with blocks of them, matrices are concatenated and sliced along their last
  // axis, and so are their gradients.

  // to[row][to_begin + i] = from[row][from_begin + i] for each i in [0, columns). from [rows,
  // from_columns], to [rows, to_columns], whose other columns keep their content. The blocks lie
  // within the rows: from_begin + columns <= from_columns, to_begin + columns <= to_columns.
  virtual void CopyColumns(int64_t rows, int64_t columns, const DeviceMemory& from,
                           int64_t from_columns, int64_t from_begin, DeviceMemory* to,
                           int64_t to_columns, int64_t to_begin) = 0;

  // y has the elements of x with the axes in another order.
  virtual void Transpose(const TransposeGeometry& geometry, const DeviceMemory& x,
                         DeviceMemory* y) = 0;

  // Row by row. x, y, dy and dx [rows, columns].

  // x[row][column] *= factors[row]. factors [rows].
  virtual void ScaleRows(int64_t rows, int64_t columns, const DeviceMemory& factors,
                         DeviceMemory* x) = 0;
  // x[row][column] += alpha * v[column]. v [columns].
  virtual void AddRowVector(int64_t rows, int64_t columns, float alpha, const DeviceMemory& v,
                            DeviceMemory* x) = 0;
  // y[row] = alpha * (sum of a[row][i] * b[row][i]) + beta * y[row]. a, b [rows, columns], which
  // may be the same; y [rows]. With beta 0 the old content of y is not read.
  virtual void RowDots(int64_t rows, int64_t columns, float alpha, const DeviceMemory& a,
                       const DeviceMemory& b, float beta, DeviceMemory* y) = 0;
  // y[row][column] = alpha * factors[row] * x[row][column] + beta * y[row][column]. factors [rows].
  // With beta 0 the old content of y is not read.
  virtual void AddScaledRows(int64_t rows, int64_t columns, float alpha,
                             const DeviceMemory& factors, const DeviceMemory& x, float beta,
                             DeviceMemory* y) = 0;

  // y[row] = the inner products of the row's pairs of vectors. y [rows, pairs].
  virtual void PairwiseDots(const PairGeometry& geometry, const DeviceMemory& x,
                            DeviceMemory* y) = 0;
  // The gradient of PairwiseDots: to a pair's dx[i] it adds dy * x[j], and to dx[j] dy * x[i].
  virtual void PairwiseDotsBackward(const PairGeometry& geometry, const DeviceMemory& x,
                                    const DeviceMemory& dy, DeviceMemory* dx) = 0;

  // y[i] = exp(x[i]) / sum of exp(x[j]) of the same row; finite where exp(x[i]) is not. y may be x.
  virtual void Softmax(int64_t rows, int64_t columns, const DeviceMemory& x, DeviceMemory* y) = 0;
  // dx[i] = y[i] * (dy[i] - sum of y[j] * dy[j] of the same row), from the output `y` of Softmax.
  // dx may be dy.
  virtual void SoftmaxBackward(int64_t rows, int64_t columns, const DeviceMemory& y,
                               const DeviceMemory& dy, DeviceMemory* dx) = 0;

  // Batch normalization. Source: Ioffe and Szegedy, ICML 2015. x, y, dx, dy [rows, channels];
  // gamma, beta and all statistics [channels]; gamma and beta may be null: 1 and 0.

  // mean and variance of each channel over the rows, the variance unbiased (times rows / (rows -
  // 1); 0 of one row): y = gamma * (x - mean) / sqrt(biased variance + epsilon) + beta.
  virtual void BatchNorm(const BatchNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                         DeviceMemory* variance, DeviceMemory* y) = 0;
  // Uses mean and variance as BatchNorm computed them. dgamma and dbeta are skipped where they are
  // null, and so is dx.
  virtual void BatchNormBackward(const BatchNormGeometry& geometry, const DeviceMemory& x,
                                 const DeviceMemory* gamma, const DeviceMemory& mean,
                                 const DeviceMemory& variance, const DeviceMemory& dy,
                                 DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) = 0;
  // y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with given statistics.
  virtual void BatchNormInference(const BatchNormGeometry& geometry, const DeviceMemory& x,
                                  const DeviceMemory* gamma, const DeviceMemory* beta,
                                  const DeviceMemory& mean, const DeviceMemory& variance,
                                  DeviceMemory* y) = 0;

  // Layer normalization. Source: Ba, Kiros and Hinton, "Layer normalization", 2016. x, y, dx, dy
  // [rows, features]; gamma, beta, dgamma and dbeta [features]; gamma and beta may be null: 1 and
  // 0.

  // y = gamma * (x - mean) * inverse_deviation + beta, with the mean of the row's features and 1 /
  // sqrt(their biased variance + epsilon). These two, [rows], are what LayerNormBackward needs
  // beside x; each is skipped where it is null.
  virtual void LayerNorm(const LayerNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                         DeviceMemory* inverse_deviation, DeviceMemory* y) = 0;
  // Uses mean and inverse_deviation as LayerNorm computed them. With xhat = (x - mean) *
  // inverse_deviation and g = gamma * dy: dgamma = sum of dy * xhat and dbeta = sum of dy over the
  // rows; dx = inverse_deviation * (g - mean of g - xhat * mean of g * xhat), means over the row.
  // Each is skipped where it is null. dx may be dy.
  virtual void LayerNormBackward(const LayerNormGeometry& geometry, const DeviceMemory& x,
                                 const DeviceMemory* gamma, const DeviceMemory& mean,
                                 const DeviceMemory& inverse_deviation, const DeviceMemory& dy,
                                 DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) = 0;

  // Losses: the loss of each example, and the gradient of `weight` times their sum with respect to
  // the scores, which is skipped when `dscores` is null.

  // scores [rows, classes]; labels [rows] are whole numbers in [0, classes), which the caller has
  // checked.
  virtual void SoftmaxCrossEntropy(int64_t rows, int64_t classes, float weight,
                                   const DeviceMemory& scores, const DeviceMemory& labels,
                                   DeviceMemory* losses, DeviceMemory* dscores) = 0;
  // max(s, 0) - s * label + log(1 + exp(-|s|)); labels in [0, 1].
  virtual void SigmoidCrossEntropy(int64_t rows, float weight, const DeviceMemory& scores,
                                   const DeviceMemory& labels, DeviceMemory* losses,
                                   DeviceMemory* dscores) = 0;
  // (s - target)^2
  virtual void MeanSquaredError(int64_t rows, float weight, const DeviceMemory& scores,
                                const DeviceMemory& targets, DeviceMemory* losses,
                                DeviceMemory* dscores) = 0;
  // With d = s - target: d^2 / 2 where |d| <= delta, else delta * (|d| - delta / 2); delta > 0.
  // Source: Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics
  // 35, 1964.
  virtual void HuberLoss(int64_t rows, float delta, float weight, const DeviceMemory& scores,
                         const DeviceMemory& targets, DeviceMemory* losses,
                         DeviceMemory* dscores) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_DEVICE_H_
