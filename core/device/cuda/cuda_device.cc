#include "core/device/cuda/cuda_device.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/device/cuda/cuda_context.h"
#include "core/device/cuda/cuda_convolution.h"
#include "core/device/cuda/cuda_matmul.h"
#include "core/device/cuda/cuda_memory.h"
#include "core/device/cuda/kernels.h"

namespace keelson {
namespace {

class CudaDevice : public Device {
 public:
  explicit CudaDevice(std::unique_ptr<CudaContext> context)
      : context_(std::move(context)), scratch_(context_.get()) {}

  std::string name() const override { return context_->name(); }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) override;
  absl::Span<float> HostSpan(DeviceMemory*) override { return {}; }
  void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) override;
  absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) override;
  void Fill(float value, int64_t n, DeviceMemory* x) override;
  absl::Status Synchronize() override;
  void MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
              DeviceMemory* c) override;
  void AddBias(int64_t rows, int64_t cols, const DeviceMemory& bias, DeviceMemory* y) override;
  void BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                    DeviceMemory* bias_gradient) override;
  void Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) override;
  void Scale(float alpha, int64_t n, DeviceMemory* x) override;
  void Conv2D(const ConvGeometry& geometry, const DeviceMemory& x, const DeviceMemory& filter,
              DeviceMemory* y) override;
  void Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                          const DeviceMemory& dy, DeviceMemory* dx) override;
  void Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dfilter) override;
  void MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override;
  void MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x, const DeviceMemory& y,
                       const DeviceMemory& dy, DeviceMemory* dx) override;
  void AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override;
  void AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                       DeviceMemory* dx) override;
  void Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) override;
  void ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                        const DeviceMemory& dy, DeviceMemory* dx) override;
  void Dropout(float rate, uint64_t seed, int64_t n, const DeviceMemory& x,
               DeviceMemory* y) override;
  void SoftmaxCrossEntropy(int64_t rows, int64_t classes, const DeviceMemory& scores,
                           const DeviceMemory& labels, DeviceMemory* losses,
                           DeviceMemory* dscores) override;
  void SigmoidCrossEntropy(int64_t rows, const DeviceMemory& scores, const DeviceMemory& labels,
                           DeviceMemory* losses, DeviceMemory* dscores) override;
  void MeanSquaredError(int64_t rows, const DeviceMemory& scores, const DeviceMemory& targets,
                        DeviceMemory* losses, DeviceMemory* dscores) override;

 private:
  cudaStream_t stream() const { return context_->stream(); }

  const std::unique_ptr<CudaContext> context_;
  CudaScratch scratch_;
};

size_t Bytes(size_t floats) { return floats * sizeof(float); }

float* DataOrNull(DeviceMemory* memory) { return memory == nullptr ? nullptr : memory->data(); }

absl::StatusOr<std::unique_ptr<DeviceMemory>> CudaDevice::Allocate(int64_t floats) {
  if (!context_->Begin("Allocate")) return context_->status();
  ASSIGN_OR_RETURN(auto memory, AllocateCudaMemory(floats, context_.get()));
  if (floats > 0 &&
      !context_->Check(
          "cudaMemsetAsync",
          cudaMemsetAsync(memory->data(), 0, Bytes(static_cast<size_t>(floats)), stream()))) {
    return context_->status();
  }
  return memory;
}

void CudaDevice::CopyToDevice(absl::Span<const float> from, DeviceMemory* to) {
  if (!context_->Begin("CopyToDevice", {{to, static_cast<int64_t>(from.size())}})) return;
  if (from.empty()) return;
  if (!context_->Check("cudaMemcpyAsync",
                       cudaMemcpyAsync(to->data(), from.data(), Bytes(from.size()),
                                       cudaMemcpyHostToDevice, stream()))) {
    return;
  }
  // From pinned memory the copy would still be reading.
  context_->Check("cudaStreamSynchronize", cudaStreamSynchronize(stream()));
}

absl::Status CudaDevice::CopyToHost(const DeviceMemory& from, absl::Span<float> to) {
  if (!context_->Begin("CopyToHost", {{&from, static_cast<int64_t>(to.size())}})) {
    return context_->status();
  }
  if (!to.empty()) {
    context_->Check("cudaMemcpyAsync", cudaMemcpyAsync(to.data(), from.data(), Bytes(to.size()),
                                                       cudaMemcpyDeviceToHost, stream()));
  }
  context_->Check("cudaStreamSynchronize", cudaStreamSynchronize(stream()));
  return context_->status();
}

void CudaDevice::Fill(float value, int64_t n, DeviceMemory* x) {
  if (!context_->Begin("Fill", {{x, n}})) return;
  context_->Check("FillKernel", cuda::LaunchFill(stream(), value, n, x->data()));
}

absl::Status CudaDevice::Synchronize() {
  if (context_->Begin("Synchronize")) {
    context_->Check("cudaStreamSynchronize", cudaStreamSynchronize(stream()));
  }
  return context_->status();
}

void CudaDevice::MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
                        DeviceMemory* c) {
  if (!context_->Begin("MatMul",
                       {{&a, args.m * args.k}, {&b, args.k * args.n}, {c, args.m * args.n}})) {
    return;
  }
  CudaMatMul(args, a.data(), b.data(), c->data(), context_.get());
}

void CudaDevice::AddBias(int64_t rows, int64_t cols, const DeviceMemory& bias, DeviceMemory* y) {
  if (!context_->Begin("AddBias", {{&bias, cols}, {y, rows * cols}})) return;
  context_->Check("AddBiasKernel",
                  cuda::LaunchAddBias(stream(), rows, cols, bias.data(), y->data()));
}

void CudaDevice::BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                              DeviceMemory* bias_gradient) {
  if (!context_->Begin("BiasGradient", {{&dy, rows * cols}, {bias_gradient, cols}})) return;
  float* const partial = scratch_.Get(cuda::ColumnSumChunks(rows) * cols);
  if (!context_->status().ok()) return;
  context_->Check("ColumnSumsKernel", cuda::LaunchColumnSums(stream(), rows, cols, dy.data(),
                                                             partial, bias_gradient->data()));
}

void CudaDevice::Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("Axpy", {{&x, n}, {y, n}})) return;
  context_->Check("AxpyKernel", cuda::LaunchAxpy(stream(), alpha, n, x.data(), y->data()));
}

void CudaDevice::Scale(float alpha, int64_t n, DeviceMemory* x) {
  if (!context_->Begin("Scale", {{x, n}})) return;
  context_->Check("ScaleKernel", cuda::LaunchScale(stream(), alpha, n, x->data()));
}

void CudaDevice::Conv2D(const ConvGeometry& geometry, const DeviceMemory& x,
                        const DeviceMemory& filter, DeviceMemory* y) {
  if (!context_->Begin("Conv2D", {{&x, geometry.in_size()},
                                  {&filter, geometry.filter_size()},
                                  {y, geometry.out_size()}})) {
    return;
  }
  CudaConvolve(geometry, x.data(), filter.data(), y->data(), &scratch_, context_.get());
}

void CudaDevice::Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                                    const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("Conv2DBackwardData", {{&filter, geometry.filter_size()},
                                              {&dy, geometry.out_size()},
                                              {dx, geometry.in_size()}})) {
    return;
  }
  CudaConvolveBackwardData(geometry, filter.data(), dy.data(), dx->data(), &scratch_,
                           context_.get());
}

void CudaDevice::Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                                      const DeviceMemory& dy, DeviceMemory* dfilter) {
  if (!context_->Begin("Conv2DBackwardFilter", {{&x, geometry.in_size()},
                                                {&dy, geometry.out_size()},
                                                {dfilter, geometry.filter_size()}})) {
    return;
  }
  CudaConvolveBackwardFilter(geometry, x.data(), dy.data(), dfilter->data(), &scratch_,
                             context_.get());
}

void CudaDevice::MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("MaxPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}})) return;
  context_->Check("MaxPoolKernel", cuda::LaunchMaxPool(stream(), geometry, x.data(), y->data()));
}

void CudaDevice::MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x,
                                 const DeviceMemory& y, const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("MaxPoolBackward", {{&x, geometry.in_size()},
                                           {&y, geometry.out_size()},
                                           {&dy, geometry.out_size()},
                                           {dx, geometry.in_size()}})) {
    return;
  }
  context_->Check(
      "MaxPoolBackwardKernel",
      cuda::LaunchMaxPoolBackward(stream(), geometry, x.data(), y.data(), dy.data(), dx->data()));
}

void CudaDevice::AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("AvgPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}})) return;
  context_->Check("AvgPoolKernel", cuda::LaunchAvgPool(stream(), geometry, x.data(), y->data()));
}

void CudaDevice::AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                                 DeviceMemory* dx) {
  if (!context_->Begin("AvgPoolBackward", {{&dy, geometry.out_size()}, {dx, geometry.in_size()}})) {
    return;
  }
  context_->Check("AvgPoolBackwardKernel",
                  cuda::LaunchAvgPoolBackward(stream(), geometry, dy.data(), dx->data()));
}

void CudaDevice::Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("Activate", {{&x, n}, {y, n}})) return;
  context_->Check("ActivateKernel", cuda::LaunchActivate(stream(), kind, n, x.data(), y->data()));
}

void CudaDevice::ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                                  const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("ActivateBackward", {{&y, n}, {&dy, n}, {dx, n}})) return;
  context_->Check("ActivateBackwardKernel",
                  cuda::LaunchActivateBackward(stream(), kind, n, y.data(), dy.data(), dx->data()));
}

void CudaDevice::Dropout(float rate, uint64_t seed, int64_t n, const DeviceMemory& x,
                         DeviceMemory* y) {
  if (!context_->Begin("Dropout", {{&x, n}, {y, n}})) return;
  context_->Check("DropoutKernel",
                  cuda::LaunchDropout(stream(), rate, seed, n, x.data(), y->data()));
}

void CudaDevice::SoftmaxCrossEntropy(int64_t rows, int64_t classes, const DeviceMemory& scores,
                                     const DeviceMemory& labels, DeviceMemory* losses,
                                     DeviceMemory* dscores) {
  if (!context_->Begin("SoftmaxCrossEntropy", {{&scores, rows * classes},
                                               {&labels, rows},
                                               {losses, rows},
                                               {dscores, rows * classes}})) {
    return;
  }
  context_->Check(
      "SoftmaxCrossEntropyKernel",
      cuda::LaunchSoftmaxCrossEntropy(stream(), rows, classes, scores.data(), labels.data(),
                                      losses->data(), DataOrNull(dscores)));
}

void CudaDevice::SigmoidCrossEntropy(int64_t rows, const DeviceMemory& scores,
                                     const DeviceMemory& labels, DeviceMemory* losses,
                                     DeviceMemory* dscores) {
  if (!context_->Begin("SigmoidCrossEntropy",
                       {{&scores, rows}, {&labels, rows}, {losses, rows}, {dscores, rows}})) {
    return;
  }
  context_->Check("SigmoidCrossEntropyKernel",
                  cuda::LaunchSigmoidCrossEntropy(stream(), rows, scores.data(), labels.data(),
                                                  losses->data(), DataOrNull(dscores)));
}

void CudaDevice::MeanSquaredError(int64_t rows, const DeviceMemory& scores,
                                  const DeviceMemory& targets, DeviceMemory* losses,
                                  DeviceMemory* dscores) {
  if (!context_->Begin("MeanSquaredError",
                       {{&scores, rows}, {&targets, rows}, {losses, rows}, {dscores, rows}})) {
    return;
  }
  context_->Check("MeanSquaredErrorKernel",
                  cuda::LaunchMeanSquaredError(stream(), rows, scores.data(), targets.data(),
                                               losses->data(), DataOrNull(dscores)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(int ordinal) {
  ASSIGN_OR_RETURN(auto context, CudaContext::Create(ordinal));
  return std::make_unique<CudaDevice>(std::move(context));
}

}  // namespace keelson
