// Devices for tests, made of others.
#ifndef KEELSON_TESTING_DEVICE_DEVICE_TESTING_H_
#define KEELSON_TESTING_DEVICE_DEVICE_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"

namespace keelson {

// Forwards to another device. A test overrides single methods.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  bool asynchronous() const override { return device_->asynchronous(); }
  absl::Span<float> HostSpan(DeviceMemory* memory) override { return device_->HostSpan(memory); }
  // `peer` is a ForwardingDevice too.
  void AddFromPeer(Device* peer, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    device_->AddFromPeer(static_cast<ForwardingDevice*>(peer)->device_.get(), n, x, y);
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) override {
    return device_->Allocate(floats);
  }
  absl::StatusOr<std::unique_ptr<HostMemory>> AllocateHost(size_t bytes) override {
    return device_->AllocateHost(bytes);
  }
  void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) override {
    device_->CopyToDevice(from, to);
  }
  void CopyIntegersToDevice(absl::Span<const int32_t> from, DeviceMemory* to) override {
    device_->CopyIntegersToDevice(from, to);
  }
  absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) override {
    return device_->CopyToHost(from, to);
  }
  void Fill(float value, int64_t n, DeviceMemory* x) override { device_->Fill(value, n, x); }
  absl::Status Synchronize() override { return device_->Synchronize(); }
  absl::Status status() const override { return device_->status(); }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent() override { return device_->NewEvent(); }
  void Record(DeviceEvent* event) override { device_->Record(event); }
  void WaitFor(const DeviceEvent& event) override { device_->WaitFor(event); }
  bool Passed(const DeviceEvent& event) override { return device_->Passed(event); }
  absl::Status Await(const DeviceEvent& event) override { return device_->Await(event); }
  double MillisecondsBetween(const DeviceEvent& from, const DeviceEvent& to) override {
    return device_->MillisecondsBetween(from, to);
  }
  absl::StatusOr<std::unique_ptr<GradientEncoder>> NewGradientEncoder(
      const WireLayout& layout) override {
    return device_->NewGradientEncoder(layout);
  }
  absl::StatusOr<std::unique_ptr<ValueDecoder>> NewValueDecoder(WireFormat format,
                                                                int64_t elements) override {
    return device_->NewValueDecoder(format, elements);
  }
  void Download(const DeviceMemory& gradient, const DeviceMemory* gate, GradientEncoder* encoder,
                absl::Span<uint8_t> to, DeviceEvent* done) override {
    device_->Download(gradient, gate, encoder, to, done);
  }
  void Upload(absl::Span<const uint8_t> from, const DeviceEvent* after, ValueDecoder* decoder,
              DeviceMemory* to, DeviceEvent* done) override {
    device_->Upload(from, after, decoder, to, done);
  }
  void Repeat(uint64_t key, absl::FunctionRef<void()> operations) override {
    device_->Repeat(key, operations);
  }
  void MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
              const Epilogue& epilogue, DeviceMemory* c) override {
    device_->MatMul(args, a, b, epilogue, c);
  }
  void DenseGradients(int64_t rows, int64_t inputs, int64_t units, const DeviceMemory& x,
                      const DeviceMemory& dy, DeviceMemory* kernel_gradient,
                      DeviceMemory* bias_gradient) override {
    device_->DenseGradients(rows, inputs, units, x, dy, kernel_gradient, bias_gradient);
  }
  void BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                    DeviceMemory* bias_gradient) override {
    device_->BiasGradient(rows, cols, dy, bias_gradient);
  }
  void MultiplySparse(const SparseRows& a, int64_t width, const DeviceMemory& x, float beta,
                      DeviceMemory* y) override {
    device_->MultiplySparse(a, width, x, beta, y);
  }
  void Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    device_->Axpy(alpha, n, x, y);
  }
  void Scale(float alpha, int64_t n, DeviceMemory* x) override { device_->Scale(alpha, n, x); }
  void Sum(int64_t n, const DeviceMemory& x, DeviceMemory* sum) override {
    device_->Sum(n, x, sum);
  }
  void ClipByGlobalNorm(float max_norm, absl::Span<DeviceMemory* const> gradients) override {
    device_->ClipByGlobalNorm(max_norm, gradients);
  }
  void Conv2D(const ConvGeometry& geometry, const DeviceMemory& x, const DeviceMemory& filter,
              const Epilogue& epilogue, DeviceMemory* y) override {
    device_->Conv2D(geometry, x, filter, epilogue, y);
  }
  void Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                          const DeviceMemory& dy, DeviceMemory* dx) override {
    device_->Conv2DBackwardData(geometry, filter, dy, dx);
  }
  void Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dfilter) override {
    device_->Conv2DBackwardFilter(geometry, x, dy, dfilter);
  }
  void MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override {
    device_->MaxPool(geometry, x, y);
  }
  void MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x, const DeviceMemory& y,
                       const DeviceMemory& dy, DeviceMemory* dx) override {
    device_->MaxPoolBackward(geometry, x, y, dy, dx);
  }
  void AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override {
    device_->AvgPool(geometry, x, y);
  }
  void AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                       DeviceMemory* dx) override {
    device_->AvgPoolBackward(geometry, dy, dx);
  }
  void GlobalAveragePool(int64_t rows, int64_t positions, int64_t channels, const DeviceMemory& x,
                         DeviceMemory* y) override {
    device_->GlobalAveragePool(rows, positions, channels, x, y);
  }
  void GlobalAveragePoolBackward(int64_t rows, int64_t positions, int64_t channels,
                                 const DeviceMemory& dy, DeviceMemory* dx) override {
    device_->GlobalAveragePoolBackward(rows, positions, channels, dy, dx);
  }
  void Add(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) override {
    device_->Add(n, a, b, y);
  }
  void Multiply(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) override {
    device_->Multiply(n, a, b, y);
  }
  void Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    device_->Activate(kind, n, x, y);
  }
  void ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                        const DeviceMemory& dy, DeviceMemory* dx) override {
    device_->ActivateBackward(kind, n, y, dy, dx);
  }
  void Gate(GateKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    device_->Gate(kind, n, x, y);
  }
  void GateBackward(GateKind kind, int64_t n, const DeviceMemory& x, const DeviceMemory& dy,
                    DeviceMemory* dx) override {
    device_->GateBackward(kind, n, x, dy, dx);
  }
  void SetSeed(uint64_t seed) override { device_->SetSeed(seed); }
  void Dropout(float rate, uint64_t stream, int64_t n, const DeviceMemory& x,
               DeviceMemory* y) override {
    device_->Dropout(rate, stream, n, x, y);
  }
  void CopyColumns(int64_t rows, int64_t columns, const DeviceMemory& from, int64_t from_columns,
                   int64_t from_begin, DeviceMemory* to, int64_t to_columns,
                   int64_t to_begin) override {
    device_->CopyColumns(rows, columns, from, from_columns, from_begin, to, to_columns, to_begin);
  }
  void ScaleRows(int64_t rows, int64_t columns, const DeviceMemory& factors,
                 DeviceMemory* x) override {
    device_->ScaleRows(rows, columns, factors, x);
  }
  void AddRowVector(int64_t rows, int64_t columns, float alpha, const DeviceMemory& v,
                    DeviceMemory* x) override {
    device_->AddRowVector(rows, columns, alpha, v, x);
  }
  void RowDots(int64_t rows, int64_t columns, float alpha, const DeviceMemory& a,
               const DeviceMemory& b, float beta, DeviceMemory* y) override {
    device_->RowDots(rows, columns, alpha, a, b, beta, y);
  }
  void AddScaledRows(int64_t rows, int64_t columns, float alpha, const DeviceMemory& factors,
                     const DeviceMemory& x, float beta, DeviceMemory* y) override {
    device_->AddScaledRows(rows, columns, alpha, factors, x, beta, y);
  }
  void PairwiseDots(const PairGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override {
    device_->PairwiseDots(geometry, x, y);
  }
  void PairwiseDotsBackward(const PairGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dx) override {
    device_->PairwiseDotsBackward(geometry, x, dy, dx);
  }
  void Transpose(const TransposeGeometry& geometry, const DeviceMemory& x,
                 DeviceMemory* y) override {
    device_->Transpose(geometry, x, y);
  }
  void InverseSquareRoot(int64_t n, float epsilon, const DeviceMemory& x,
                         DeviceMemory* y) override {
    device_->InverseSquareRoot(n, epsilon, x, y);
  }
  void Softmax(int64_t rows, int64_t columns, const DeviceMemory& x, DeviceMemory* y) override {
    device_->Softmax(rows, columns, x, y);
  }
  void SoftmaxBackward(int64_t rows, int64_t columns, const DeviceMemory& y, const DeviceMemory& dy,
                       DeviceMemory* dx) override {
    device_->SoftmaxBackward(rows, columns, y, dy, dx);
  }
  void BatchNorm(const BatchNormGeometry& geometry, const DeviceMemory& x,
                 const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                 DeviceMemory* variance, DeviceMemory* y) override {
    device_->BatchNorm(geometry, x, gamma, beta, mean, variance, y);
  }
  void BatchNormBackward(const BatchNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory& mean,
                         const DeviceMemory& variance, const DeviceMemory& dy, DeviceMemory* dgamma,
                         DeviceMemory* dbeta, DeviceMemory* dx) override {
    device_->BatchNormBackward(geometry, x, gamma, mean, variance, dy, dgamma, dbeta, dx);
  }
  void BatchNormInference(const BatchNormGeometry& geometry, const DeviceMemory& x,
                          const DeviceMemory* gamma, const DeviceMemory* beta,
                          const DeviceMemory& mean, const DeviceMemory& variance,
                          DeviceMemory* y) override {
    device_->BatchNormInference(geometry, x, gamma, beta, mean, variance, y);
  }
  void LayerNorm(const LayerNormGeometry& geometry, const DeviceMemory& x,
                 const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                 DeviceMemory* inverse_deviation, DeviceMemory* y) override {
    device_->LayerNorm(geometry, x, gamma, beta, mean, inverse_deviation, y);
  }
  void LayerNormBackward(const LayerNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory& mean,
                         const DeviceMemory& inverse_deviation, const DeviceMemory& dy,
                         DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) override {
    device_->LayerNormBackward(geometry, x, gamma, mean, inverse_deviation, dy, dgamma, dbeta, dx);
  }
  void SoftmaxCrossEntropy(int64_t rows, int64_t classes, float weight, const DeviceMemory& scores,
                           const DeviceMemory& labels, DeviceMemory* losses,
                           DeviceMemory* dscores) override {
    device_->SoftmaxCrossEntropy(rows, classes, weight, scores, labels, losses, dscores);
  }
  void SigmoidCrossEntropy(int64_t rows, float weight, const DeviceMemory& scores,
                           const DeviceMemory& labels, DeviceMemory* losses,
                           DeviceMemory* dscores) override {
    device_->SigmoidCrossEntropy(rows, weight, scores, labels, losses, dscores);
  }
  void MeanSquaredError(int64_t rows, float weight, const DeviceMemory& scores,
                        const DeviceMemory& targets, DeviceMemory* losses,
                        DeviceMemory* dscores) override {
    device_->MeanSquaredError(rows, weight, scores, targets, losses, dscores);
  }
  void HuberLoss(int64_t rows, float delta, float weight, const DeviceMemory& scores,
                 const DeviceMemory& targets, DeviceMemory* losses,
                 DeviceMemory* dscores) override {
    device_->HuberLoss(rows, delta, weight, scores, targets, losses, dscores);
  }

 private:
  const std::unique_ptr<Device> device_;
};

// Behaves as a GPU: the host cannot use its memory, and calls may return before they are done.
class HostlessDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  std::string name() const override { return "hostless " + ForwardingDevice::name(); }
  bool asynchronous() const override { return true; }
  absl::Span<float> HostSpan(DeviceMemory*) override { return {}; }
};

}  // namespace keelson

#endif  // KEELSON_TESTING_DEVICE_DEVICE_TESTING_H_
