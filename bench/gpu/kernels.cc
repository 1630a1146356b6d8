#include "bench/gpu/kernels.h"

#include <limits>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "bench/gpu/random_memory.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
constexpr int64_t kBiasColumns = 2048;
constexpr int64_t kBatchNormChannels = 64;

// Images of 28 x 28 with 32 channels.
PoolGeometry PoolOf(int64_t n) {
  PoolGeometry geometry;
  geometry.in_height = geometry.in_width = 28;
  geometry.channels = 32;
  geometry.out_height = geometry.out_width = 14;
  geometry.size = geometry.stride = 2;
  geometry.batch = 1;
  geometry.batch = n / geometry.in_size();
  return geometry;
}

class KernelBench {
 public:
  KernelBench(int64_t tensor_bytes, Device* device, const TimingOptions& timing)
      : n_(tensor_bytes / kFloatBytes), device_(device), timing_(timing) {}

  absl::StatusOr<std::vector<KernelResult>> Run() {
    ASSIGN_OR_RETURN(timer_, NewDeviceTimer(device_));
    ASSIGN_OR_RETURN(x_, RandomMemory(device_, n_));
    ASSIGN_OR_RETURN(y_, RandomMemory(device_, n_));
    ASSIGN_OR_RETURN(z_, RandomMemory(device_, n_));
    ASSIGN_OR_RETURN(w_, RandomMemory(device_, n_));
    ASSIGN_OR_RETURN(one_, device_->Allocate(1));
    RETURN_IF_ERROR(ElementByElement());
    RETURN_IF_ERROR(Reductions());
    RETURN_IF_ERROR(BatchNormalization());
    RETURN_IF_ERROR(Pooling());
    RETURN_IF_ERROR(Losses());
    return std::move(results_);
  }

 private:
  absl::Status ElementByElement() {
    const auto n = static_cast<double>(n_);
    RETURN_IF_ERROR(Measure("fill", "x", n, [&] { device_->Fill(0.5f, n_, x_.get()); }));
    RETURN_IF_ERROR(Refill());
    RETURN_IF_ERROR(
        Measure("axpy", "x, y twice", 3 * n, [&] { device_->Axpy(1e-6f, n_, *x_, y_.get()); }));
    RETURN_IF_ERROR(
        Measure("scale", "x twice", 2 * n, [&] { device_->Scale(0.999f, n_, y_.get()); }));
    for (const auto& [name, kind] :
         {std::pair("relu", ActivationKind::kRelu), std::pair("tanh", ActivationKind::kTanh),
          std::pair("sigmoid", ActivationKind::kSigmoid)}) {
      RETURN_IF_ERROR(
          Measure(name, "x, y", 2 * n, [&] { device_->Activate(kind, n_, *x_, y_.get()); }));
      RETURN_IF_ERROR(Measure(std::string(name) + " backward", "y, dy, dx", 3 * n,
                              [&] { device_->ActivateBackward(kind, n_, *y_, *x_, z_.get()); }));
    }
    device_->SetSeed(1);
    return Measure("dropout", "x, y", 2 * n, [&] { device_->Dropout(0.5f, 1, n_, *x_, y_.get()); });
  }

  absl::Status Reductions() {
    const auto n = static_cast<double>(n_);
    RETURN_IF_ERROR(Measure("sum", "x", n, [&] { device_->Sum(n_, *x_, one_.get()); }));
    ASSIGN_OR_RETURN(const auto sums, device_->Allocate(kBiasColumns));
    const int64_t rows = n_ / kBiasColumns;
    RETURN_IF_ERROR(Measure("bias gradient, 2048 columns", "dy",
                            static_cast<double>(rows * kBiasColumns),
                            [&] { device_->BiasGradient(rows, kBiasColumns, *x_, sums.get()); }));
    DeviceMemory* const gradient = x_.get();
    // What is not scaled is read once.
    return Measure("clip by global norm, within it", "x", n, [&] {
      device_->ClipByGlobalNorm(std::numeric_limits<float>::max(), {&gradient, 1});
    });
  }

  absl::Status BatchNormalization() {
    BatchNormGeometry geometry;
    geometry.channels = kBatchNormChannels;
    geometry.rows = n_ / geometry.channels;
    const auto n = static_cast<double>(geometry.rows * geometry.channels);
    std::unique_ptr<DeviceMemory> gamma, beta, mean, variance, dgamma, dbeta;
    for (auto* memory : {&gamma, &beta, &mean, &variance, &dgamma, &dbeta}) {
      ASSIGN_OR_RETURN(*memory, device_->Allocate(geometry.channels));
      device_->Fill(1, geometry.channels, memory->get());
    }
    RETURN_IF_ERROR(Measure("batch norm, 64 channels", "x twice, y", 3 * n, [&] {
      device_->BatchNorm(geometry, *x_, gamma.get(), beta.get(), mean.get(), variance.get(),
                         y_.get());
    }));
    RETURN_IF_ERROR(Measure("batch norm backward, 64 channels", "x and dy twice, dx", 5 * n, [&] {
      device_->BatchNormBackward(geometry, *x_, gamma.get(), *mean, *variance, *y_, dgamma.get(),
                                 dbeta.get(), z_.get());
    }));
    return Measure("batch norm inference, 64 channels", "x, y", 2 * n, [&] {
      device_->BatchNormInference(geometry, *x_, gamma.get(), beta.get(), *mean, *variance,
                                  y_.get());
    });
  }

  absl::Status Pooling() {
    const PoolGeometry geometry = PoolOf(n_);
    const auto in = static_cast<double>(geometry.in_size());
    const auto out = static_cast<double>(geometry.out_size());
    RETURN_IF_ERROR(Measure("max pool 2 x 2, 32 channels", "x, y", in + out,
                            [&] { device_->MaxPool(geometry, *x_, y_.get()); }));
    RETURN_IF_ERROR(Measure("max pool backward", "x, y, dy, dx", 2 * in + 2 * out,
                            [&] { device_->MaxPoolBackward(geometry, *x_, *y_, *w_, z_.get()); }));
    RETURN_IF_ERROR(Measure("average pool 2 x 2, 32 channels", "x, y", in + out,
                            [&] { device_->AvgPool(geometry, *x_, y_.get()); }));
    return Measure("average pool backward", "dy, dx", in + out,
                   [&] { device_->AvgPoolBackward(geometry, *w_, z_.get()); });
  }

  absl::Status Losses() {
    for (const int64_t classes : {10, 1000}) {
      const int64_t rows = n_ / classes;
      ASSIGN_OR_RETURN(const auto labels, device_->Allocate(rows));
      ASSIGN_OR_RETURN(const auto losses, device_->Allocate(rows));
      RETURN_IF_ERROR(Measure("softmax cross-entropy, " + std::to_string(classes) + " classes",
                              "scores, dscores, labels, losses",
                              static_cast<double>(2 * rows * classes + 2 * rows), [&] {
                                device_->SoftmaxCrossEntropy(rows, classes, 1, *x_, *labels,
                                                             losses.get(), z_.get());
                              }));
    }
    device_->Fill(0.5f, n_, y_.get());
    const auto n = static_cast<double>(n_);
    const std::string counted = "scores, labels, losses, dscores";
    RETURN_IF_ERROR(Measure("sigmoid cross-entropy", counted, 4 * n, [&] {
      device_->SigmoidCrossEntropy(n_, 1, *x_, *y_, z_.get(), w_.get());
    }));
    return Measure("mean squared error", counted, 4 * n,
                   [&] { device_->MeanSquaredError(n_, 1, *x_, *y_, z_.get(), w_.get()); });
  }

  absl::Status Refill() {
    device_->CopyToDevice(RandomNumbers(n_), x_.get());
    return device_->Synchronize();
  }

  absl::Status Measure(const std::string& name, const std::string& counted, double floats,
                       absl::FunctionRef<void()> operation) {
    KernelResult result{name, counted, floats * kFloatBytes, {}};
    ASSIGN_OR_RETURN(const Spread milliseconds,
                     MillisecondsPerCall(timing_, timer_.get(), operation));
    result.bytes_per_second = PerSecond(result.bytes, milliseconds);
    results_.push_back(std::move(result));
    return absl::OkStatus();
  }

  const int64_t n_;
  Device* const device_;
  const TimingOptions timing_;
  std::unique_ptr<GpuTimer> timer_;
  std::unique_ptr<DeviceMemory> x_;
  std::unique_ptr<DeviceMemory> y_;
  std::unique_ptr<DeviceMemory> z_;
  std::unique_ptr<DeviceMemory> w_;
  std::unique_ptr<DeviceMemory> one_;
  std::vector<KernelResult> results_;
};

}  // namespace

absl::StatusOr<std::vector<KernelResult>> MeasureKernels(int64_t tensor_bytes, Device* device,
                                                         const TimingOptions& timing) {
  return KernelBench(tensor_bytes, device, timing).Run();
}

}  // namespace keelson::bench
