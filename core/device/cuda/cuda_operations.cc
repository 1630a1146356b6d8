// The operations of CudaDevice that compute.
#include <vector>

#include "core/device/cuda/cuda_device_impl.h"
#include "core/device/cuda/kernels/kernels.h"

namespace keelson {
namespace {

const float* DataOrNull(const DeviceMemory* memory) {
  return memory == nullptr ? nullptr : memory->data();
}
float* DataOrNull(DeviceMemory* memory) { return memory == nullptr ? nullptr : memory->data(); }

CudaEpilogue OnDevice(const Epilogue& epilogue) {
  return {DataOrNull(epilogue.bias), epilogue.activation};
}

}  // namespace

// Linear algebra

void CudaDevice::MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
                        const Epilogue& epilogue, DeviceMemory* c) {
  if (!context_->Begin("MatMul", {{&a, args.m * args.k},
                                  {&b, args.k * args.n},
                                  {epilogue.bias, args.n},
                                  {c, args.m * args.n}})) {
    return;
  }
  products_.MatMul(args, a.data(), b.data(), OnDevice(epilogue), c->data());
}

void CudaDevice::DenseGradients(int64_t rows, int64_t inputs, int64_t units, const DeviceMemory& x,
                                const DeviceMemory& dy, DeviceMemory* kernel_gradient,
                                DeviceMemory* bias_gradient) {
  if (!context_->Begin("DenseGradients", {{&x, rows * inputs},
                                          {&dy, rows * units},
                                          {kernel_gradient, inputs * units},
                                          {bias_gradient, units}})) {
    return;
  }
  products_.DenseGradients(rows, inputs, units, x.data(), dy.data(), kernel_gradient->data(),
                           DataOrNull(bias_gradient));
}

void CudaDevice::BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                              DeviceMemory* bias_gradient) {
  if (!context_->Begin("BiasGradient", {{&dy, rows * cols}, {bias_gradient, cols}})) return;
  products_.ColumnSums(rows, cols, dy.data(), bias_gradient->data());
}

void CudaDevice::Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("Axpy", {{&x, n}, {y, n}})) return;
  context_->Check("AxpyKernel",
                  cuda::LaunchAxpy(context_->compute(), alpha, n, x.data(), y->data()));
}

void CudaDevice::Scale(float alpha, int64_t n, DeviceMemory* x) {
  if (!context_->Begin("Scale", {{x, n}})) return;
  context_->Check("ScaleKernel", cuda::LaunchScale(context_->compute(), alpha, n, x->data()));
}

void CudaDevice::Fill(float value, int64_t n, DeviceMemory* x) {
  if (!context_->Begin("Fill", {{x, n}})) return;
  context_->Check("FillKernel", cuda::LaunchFill(context_->compute(), value, n, x->data()));
}

void CudaDevice::Sum(int64_t n, const DeviceMemory& x, DeviceMemory* sum) {
  if (!context_->Begin("Sum", {{&x, n}, {sum, 1}})) return;
  float* const partial = scratch_.Get<float>(cuda::SumScratch(n));
  if (!context_->status().ok()) return;
  context_->Check("SumKernel",
                  cuda::LaunchSum(context_->compute(), n, x.data(), partial, sum->data()));
}

void CudaDevice::ClipByGlobalNorm(float max_norm, absl::Span<DeviceMemory* const> gradients) {
  if (!context_->Begin("ClipByGlobalNorm")) return;
  std::vector<cuda::FloatArray> arrays;
  arrays.reserve(gradients.size());
  for (DeviceMemory* gradient : gradients) arrays.push_back({gradient->data(), gradient->size()});
  const auto num_arrays = static_cast<int64_t>(arrays.size());
  float* const scratch = scratch_.Get<float>(cuda::ClipScratch(num_arrays));
  if (!context_->status().ok()) return;
  context_->Check("ClipByGlobalNormKernel",
                  cuda::LaunchClipByGlobalNorm(context_->compute(), max_norm, arrays.data(),
                                               num_arrays, scratch));
}

bool CudaDevice::CanReach(const CudaContext& peer) {
  if (peer.ordinal() == context_->ordinal()) return true;
  const auto found = reachable_.find(peer.ordinal());
  if (found != reachable_.end()) return found->second;
  int possible = 0;
  bool reachable =
      context_->Check("cudaDeviceCanAccessPeer",
                      cudaDeviceCanAccessPeer(&possible, context_->ordinal(), peer.ordinal())) &&
      possible != 0;
  if (reachable) {
    const cudaError_t result = cudaDeviceEnablePeerAccess(peer.ordinal(), 0);
    if (result == cudaErrorPeerAccessAlreadyEnabled) {
      static_cast<void>(cudaGetLastError());
    } else {
      reachable = context_->Check("cudaDeviceEnablePeerAccess", result);
    }
  }
  return reachable_[peer.ordinal()] = reachable;
}

void CudaDevice::AddFromPeer(Device* peer, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  CudaContext* const other = static_cast<CudaDevice*>(peer)->context_.get();
  if (!other->status().ok()) return context_->Fail(other->status());
  if (!context_->BeginUnrepeated("AddFromPeer", {{&x, n}, {y, n}})) return;
  if (n == 0 || !context_->WaitForPeer(other)) return;
  const float* from = x.data();
  if (!CanReach(*other)) {
    float* const copy = scratch_.Get<float>(n);
    if (copy == nullptr ||
        !context_->Check("cudaMemcpyPeerAsync",
                         cudaMemcpyPeerAsync(copy, context_->ordinal(), from, other->ordinal(),
                                             CudaFloatBytes(n), context_->compute()))) {
      return;
    }
    from = copy;
  }
  if (context_->Check("AxpyKernel", cuda::LaunchAxpy(context_->compute(), 1, n, from, y->data())) &&
      other->Begin("AddFromPeer")) {
    other->WaitForPeer(context_.get());
  }
}

// Convolution

void CudaDevice::Conv2D(const ConvGeometry& geometry, const DeviceMemory& x,
                        const DeviceMemory& filter, const Epilogue& epilogue, DeviceMemory* y) {
  if (!context_->Begin("Conv2D", {{&x, geometry.in_size()},
                                  {&filter, geometry.filter_size()},
                                  {epilogue.bias, geometry.out_channels},
                                  {y, geometry.out_size()}})) {
    return;
  }
  convolution_.Forward(geometry, x.data(), filter.data(), OnDevice(epilogue), y->data());
}

void CudaDevice::Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                                    const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("Conv2DBackwardData", {{&filter, geometry.filter_size()},
                                              {&dy, geometry.out_size()},
                                              {dx, geometry.in_size()}})) {
    return;
  }
  convolution_.BackwardData(geometry, filter.data(), dy.data(), dx->data());
}

void CudaDevice::Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                                      const DeviceMemory& dy, DeviceMemory* dfilter) {
  if (!context_->Begin("Conv2DBackwardFilter", {{&x, geometry.in_size()},
                                                {&dy, geometry.out_size()},
                                                {dfilter, geometry.filter_size()}})) {
    return;
  }
  convolution_.BackwardFilter(geometry, x.data(), dy.data(), dfilter->data());
}

// Pooling

void CudaDevice::MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("MaxPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}})) return;
  context_->Check("MaxPoolKernel",
                  cuda::LaunchMaxPool(context_->compute(), geometry, x.data(), y->data()));
}

void CudaDevice::MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x,
                                 const DeviceMemory& y, const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("MaxPoolBackward", {{&x, geometry.in_size()},
                                           {&y, geometry.out_size()},
                                           {&dy, geometry.out_size()},
                                           {dx, geometry.in_size()}})) {
    return;
  }
  context_->Check("MaxPoolBackwardKernel",
                  cuda::LaunchMaxPoolBackward(context_->compute(), geometry, x.data(), y.data(),
                                              dy.data(), dx->data()));
}

void CudaDevice::AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("AvgPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}})) return;
  context_->Check("AvgPoolKernel",
                  cuda::LaunchAvgPool(context_->compute(), geometry, x.data(), y->data()));
}

void CudaDevice::AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                                 DeviceMemory* dx) {
  if (!context_->Begin("AvgPoolBackward", {{&dy, geometry.out_size()}, {dx, geometry.in_size()}})) {
    return;
  }
  context_->Check(
      "AvgPoolBackwardKernel",
      cuda::LaunchAvgPoolBackward(context_->compute(), geometry, dy.data(), dx->data()));
}

void CudaDevice::GlobalAveragePool(int64_t rows, int64_t positions, int64_t channels,
                                   const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("GlobalAveragePool",
                       {{&x, rows * positions * channels}, {y, rows * channels}})) {
    return;
  }
  context_->Check("GlobalAveragePoolKernel",
                  cuda::LaunchGlobalAveragePool(context_->compute(), rows, positions, channels,
                                                x.data(), y->data()));
}

void CudaDevice::GlobalAveragePoolBackward(int64_t rows, int64_t positions, int64_t channels,
                                           const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("GlobalAveragePoolBackward",
                       {{&dy, rows * channels}, {dx, rows * positions * channels}})) {
    return;
  }
  context_->Check("GlobalAveragePoolBackwardKernel",
                  cuda::LaunchGlobalAveragePoolBackward(context_->compute(), rows, positions,
                                                        channels, dy.data(), dx->data()));
}

// Element by element

void CudaDevice::Add(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) {
  if (!context_->Begin("Add", {{&a, n}, {&b, n}, {y, n}})) return;
  context_->Check("AddKernel",
                  cuda::LaunchAdd(context_->compute(), n, a.data(), b.data(), y->data()));
}

void CudaDevice::Multiply(int64_t n, const DeviceMemory& a, const DeviceMemory& b,
                          DeviceMemory* y) {
  if (!context_->Begin("Multiply", {{&a, n}, {&b, n}, {y, n}})) return;
  context_->Check("MultiplyKernel",
                  cuda::LaunchMultiply(context_->compute(), n, a.data(), b.data(), y->data()));
}

void CudaDevice::InverseSquareRoot(int64_t n, float epsilon, const DeviceMemory& x,
                                   DeviceMemory* y) {
  if (!context_->Begin("InverseSquareRoot", {{&x, n}, {y, n}})) return;
  context_->Check(
      "InverseSquareRootKernel",
      cuda::LaunchInverseSquareRoot(context_->compute(), n, epsilon, x.data(), y->data()));
}

void CudaDevice::Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("Activate", {{&x, n}, {y, n}})) return;
  context_->Check("ActivateKernel",
                  cuda::LaunchActivate(context_->compute(), kind, n, x.data(), y->data()));
}

void CudaDevice::ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                                  const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("ActivateBackward", {{&y, n}, {&dy, n}, {dx, n}})) return;
  context_->Check(
      "ActivateBackwardKernel",
      cuda::LaunchActivateBackward(context_->compute(), kind, n, y.data(), dy.data(), dx->data()));
}

void CudaDevice::Gate(GateKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  if (!context_->Begin("Gate", {{&x, n}, {y, n}})) return;
  context_->Check("GateKernel",
                  cuda::LaunchGate(context_->compute(), kind, n, x.data(), y->data()));
}

void CudaDevice::GateBackward(GateKind kind, int64_t n, const DeviceMemory& x,
                              const DeviceMemory& dy, DeviceMemory* dx) {
  if (!context_->Begin("GateBackward", {{&x, n}, {&dy, n}, {dx, n}})) return;
  context_->Check("GateBackwardKernel", cuda::LaunchGateBackward(context_->compute(), kind, n,
                                                                 x.data(), dy.data(), dx->data()));
}

void CudaDevice::SetSeed(uint64_t seed) {
  if (!context_->BeginUnrepeated("SetSeed")) return;
  staging_.CopyToDevice(&seed, sizeof(seed), seed_.get());
}

void CudaDevice::Dropout(float rate, uint64_t stream, int64_t n, const DeviceMemory& x,
                         DeviceMemory* y) {
  if (!context_->Begin("Dropout", {{&x, n}, {y, n}})) return;
  context_->Check(
      "DropoutKernel",
      cuda::LaunchDropout(context_->compute(), rate, reinterpret_cast<const uint64_t*>(seed_.get()),
                          stream, n, x.data(), y->data()));
}

// Columns

void CudaDevice::CopyColumns(int64_t rows, int64_t columns, const DeviceMemory& from,
                             int64_t from_columns, int64_t from_begin, DeviceMemory* to,
                             int64_t to_columns, int64_t to_begin) {
  if (!context_->Begin("CopyColumns", {{&from, rows * from_columns}, {to, rows * to_columns}})) {
    return;
  }
  context_->Check(
      "CopyColumnsKernel",
      cuda::LaunchCopyColumns(context_->compute(), rows, columns, from.data() + from_begin,
                              from_columns, to->data() + to_begin, to_columns));
}

// Row by row

void CudaDevice::Softmax(int64_t rows, int64_t columns, const DeviceMemory& x, DeviceMemory* y) {
  const int64_t n = rows * columns;
  if (!context_->Begin("Softmax", {{&x, n}, {y, n}})) return;
  context_->Check("SoftmaxKernel",
                  cuda::LaunchSoftmax(context_->compute(), rows, columns, x.data(), y->data()));
}

void CudaDevice::SoftmaxBackward(int64_t rows, int64_t columns, const DeviceMemory& y,
                                 const DeviceMemory& dy, DeviceMemory* dx) {
  const int64_t n = rows * columns;
  if (!context_->Begin("SoftmaxBackward", {{&y, n}, {&dy, n}, {dx, n}})) return;
  context_->Check("SoftmaxBackwardKernel",
                  cuda::LaunchSoftmaxBackward(context_->compute(), rows, columns, y.data(),
                                              dy.data(), dx->data()));
}

// Batch normalization

void CudaDevice::BatchNorm(const BatchNormGeometry& geometry, const DeviceMemory& x,
                           const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                           DeviceMemory* variance, DeviceMemory* y) {
  const int64_t n = geometry.rows * geometry.channels, channels = geometry.channels;
  if (!context_->Begin("BatchNorm", {{&x, n},
                                     {gamma, channels},
                                     {beta, channels},
                                     {mean, channels},
                                     {variance, channels},
                                     {y, n}})) {
    return;
  }
  float* const scratch = scratch_.Get<float>(cuda::BatchNormScratch(geometry));
  if (!context_->status().ok()) return;
  context_->Check(
      "BatchNormKernel",
      cuda::LaunchBatchNorm(context_->compute(), geometry, x.data(), DataOrNull(gamma),
                            DataOrNull(beta), scratch, mean->data(), variance->data(), y->data()));
}

void CudaDevice::BatchNormBackward(const BatchNormGeometry& geometry, const DeviceMemory& x,
                                   const DeviceMemory* gamma, const DeviceMemory& mean,
                                   const DeviceMemory& variance, const DeviceMemory& dy,
                                   DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) {
  const int64_t n = geometry.rows * geometry.channels, channels = geometry.channels;
  if (!context_->Begin("BatchNormBackward", {{&x, n},
                                             {gamma, channels},
                                             {&mean, channels},
                                             {&variance, channels},
                                             {&dy, n},
                                             {dgamma, channels},
                                             {dbeta, channels},
                                             {dx, n}})) {
    return;
  }
  float* const scratch = scratch_.Get<float>(cuda::BatchNormScratch(geometry));
  if (!context_->status().ok()) return;
  context_->Check(
      "BatchNormBackwardKernel",
      cuda::LaunchBatchNormBackward(context_->compute(), geometry, x.data(), DataOrNull(gamma),
                                    mean.data(), variance.data(), dy.data(), scratch,
                                    DataOrNull(dgamma), DataOrNull(dbeta), DataOrNull(dx)));
}

void CudaDevice::BatchNormInference(const BatchNormGeometry& geometry, const DeviceMemory& x,
                                    const DeviceMemory* gamma, const DeviceMemory* beta,
                                    const DeviceMemory& mean, const DeviceMemory& variance,
                                    DeviceMemory* y) {
  const int64_t n = geometry.rows * geometry.channels, channels = geometry.channels;
  if (!context_->Begin("BatchNormInference", {{&x, n},
                                              {gamma, channels},
                                              {beta, channels},
                                              {&mean, channels},
                                              {&variance, channels},
                                              {y, n}})) {
    return;
  }
  context_->Check(
      "BatchNormInferenceKernel",
      cuda::LaunchBatchNormInference(context_->compute(), geometry, x.data(), DataOrNull(gamma),
                                     DataOrNull(beta), mean.data(), variance.data(), y->data()));
}

// Layer normalization

void CudaDevice::LayerNorm(const LayerNormGeometry& geometry, const DeviceMemory& x,
                           const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                           DeviceMemory* inverse_deviation, DeviceMemory* y) {
  const int64_t rows = geometry.rows, features = geometry.features, n = rows * features;
  if (!context_->Begin("LayerNorm", {{&x, n},
                                     {gamma, features},
                                     {beta, features},
                                     {mean, rows},
                                     {inverse_deviation, rows},
                                     {y, n}})) {
    return;
  }
  context_->Check("LayerNormKernel",
                  cuda::LaunchLayerNorm(context_->compute(), geometry, x.data(), DataOrNull(gamma),
                                        DataOrNull(beta), DataOrNull(mean),
                                        DataOrNull(inverse_deviation), y->data()));
}

void CudaDevice::LayerNormBackward(const LayerNormGeometry& geometry, const DeviceMemory& x,
                                   const DeviceMemory* gamma, const DeviceMemory& mean,
                                   const DeviceMemory& inverse_deviation, const DeviceMemory& dy,
                                   DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) {
  const int64_t rows = geometry.rows, features = geometry.features, n = rows * features;
  if (!context_->Begin("LayerNormBackward", {{&x, n},
                                             {gamma, features},
                                             {&mean, rows},
                                             {&inverse_deviation, rows},
                                             {&dy, n},
                                             {dgamma, features},
                                             {dbeta, features},
                                             {dx, n}})) {
    return;
  }
  float* const scratch = scratch_.Get<float>(cuda::LayerNormScratch(geometry));
  if (!context_->status().ok()) return;
  context_->Check(
      "LayerNormBackwardKernel",
      cuda::LaunchLayerNormBackward(context_->compute(), geometry, x.data(), DataOrNull(gamma),
                                    mean.data(), inverse_deviation.data(), dy.data(), scratch,
                                    DataOrNull(dgamma), DataOrNull(dbeta), DataOrNull(dx)));
}

// Losses

void CudaDevice::SoftmaxCrossEntropy(int64_t rows, int64_t classes, float weight,
                                     const DeviceMemory& scores, const DeviceMemory& labels,
                                     DeviceMemory* losses, DeviceMemory* dscores) {
  if (!context_->Begin("SoftmaxCrossEntropy", {{&scores, rows * classes},
                                               {&labels, rows},
                                               {losses, rows},
                                               {dscores, rows * classes}})) {
    return;
  }
  context_->Check(
      "SoftmaxCrossEntropyKernel",
      cuda::LaunchSoftmaxCrossEntropy(context_->compute(), rows, classes, weight, scores.data(),
                                      labels.data(), losses->data(), DataOrNull(dscores)));
}

void CudaDevice::SigmoidCrossEntropy(int64_t rows, float weight, const DeviceMemory& scores,
                                     const DeviceMemory& labels, DeviceMemory* losses,
                                     DeviceMemory* dscores) {
  if (!context_->Begin("SigmoidCrossEntropy",
                       {{&scores, rows}, {&labels, rows}, {losses, rows}, {dscores, rows}})) {
    return;
  }
  context_->Check(
      "SigmoidCrossEntropyKernel",
      cuda::LaunchSigmoidCrossEntropy(context_->compute(), rows, weight, scores.data(),
                                      labels.data(), losses->data(), DataOrNull(dscores)));
}

void CudaDevice::MeanSquaredError(int64_t rows, float weight, const DeviceMemory& scores,
                                  const DeviceMemory& targets, DeviceMemory* losses,
                                  DeviceMemory* dscores) {
  if (!context_->Begin("MeanSquaredError",
                       {{&scores, rows}, {&targets, rows}, {losses, rows}, {dscores, rows}})) {
    return;
  }
  context_->Check(
      "MeanSquaredErrorKernel",
      cuda::LaunchMeanSquaredError(context_->compute(), rows, weight, scores.data(), targets.data(),
                                   losses->data(), DataOrNull(dscores)));
}

void CudaDevice::HuberLoss(int64_t rows, float delta, float weight, const DeviceMemory& scores,
                           const DeviceMemory& targets, DeviceMemory* losses,
                           DeviceMemory* dscores) {
  if (!context_->Begin("HuberLoss",
                       {{&scores, rows}, {&targets, rows}, {losses, rows}, {dscores, rows}})) {
    return;
  }
  context_->Check("HuberLossKernel",
                  cuda::LaunchHuberLoss(context_->compute(), rows, delta, weight, scores.data(),
                                        targets.data(), losses->data(), DataOrNull(dscores)));
}

}  // namespace keelson
