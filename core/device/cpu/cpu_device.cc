#include "core/device/cpu/cpu_device.h"

#include <omp.h>

#include <algorithm>
#include <initializer_list>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/available_cores.h"
#include "core/device/cpu/convolution.h"
#include "core/device/cpu/elementwise.h"
#include "core/device/cpu/losses.h"
#include "core/device/cpu/pooling.h"
#include "core/tensor/aligned_buffer.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace keelson {
namespace {

// Below this many products, about a millisecond's on one core, waking threads costs more than they
// save, and where other processes want the cores too, waiting for them costs many times more.
constexpr int64_t kMinParallelProducts = int64_t{1} << 25;

class CpuMemory : public DeviceMemory {
 public:
  explicit CpuMemory(AlignedBuffer buffer)
      : DeviceMemory(buffer.data(), buffer.size()), buffer_(std::move(buffer)) {}

 private:
  const AlignedBuffer buffer_;
};

// An operand and the elements that the operation touches.
struct Extent {
  const DeviceMemory* memory;  // null: not used
  int64_t size;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}

  std::string name() const override;
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) override;
  absl::Span<float> HostSpan(DeviceMemory* memory) override;
  void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) override;
  absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) override;
  void Fill(float value, int64_t n, DeviceMemory* x) override;
  absl::Status Synchronize() override { return status_; }
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
  // Runs `f` with this device's threads, unless an earlier operation failed or an operand is too
  // small; what `f` throws becomes the device's status.
  template <typename F>
  void Run(const char* operation, std::initializer_list<Extent> extents, F f);
  bool Fits(const char* operation, std::initializer_list<Extent> extents);

  const int threads_;
  absl::Status status_;
  Convolution convolution_;
};

float* DataOrNull(DeviceMemory* memory) { return memory == nullptr ? nullptr : memory->data(); }

template <typename F>
void CpuDevice::Run(const char* operation, std::initializer_list<Extent> extents, F f) {
  if (!status_.ok() || !Fits(operation, extents)) return;
  omp_set_num_threads(threads_);
  try {
    f();
  } catch (const dnnl::error& error) {
    status_ = absl::InternalError(absl::StrCat(
        "device cpu: ", operation, ": oneDNN: ", error.what(), " (", error.status, ")"));
  } catch (const std::bad_alloc&) {
    status_ =
        absl::ResourceExhaustedError(absl::StrCat("device cpu: ", operation, ": out of memory"));
  }
}

bool CpuDevice::Fits(const char* operation, std::initializer_list<Extent> extents) {
  for (const Extent& extent : extents) {
    if (extent.memory == nullptr || extent.size <= extent.memory->size()) continue;
    status_ =
        absl::InternalError(absl::StrCat("device cpu: ", operation, ": expected memory of ",
                                         extent.size, " floats, found ", extent.memory->size()));
    return false;
  }
  return true;
}

std::string CpuDevice::name() const {
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat("cpu (oneDNN ", version->major, ".", version->minor, ", ", threads_,
                      threads_ == 1 ? " thread)" : " threads)");
}

absl::StatusOr<std::unique_ptr<DeviceMemory>> CpuDevice::Allocate(int64_t floats) {
  try {
    return std::make_unique<CpuMemory>(AlignedBuffer(floats));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("device cpu: out of memory allocating ", floats, " floats"));
  }
}

absl::Span<float> CpuDevice::HostSpan(DeviceMemory* memory) {
  return {memory->data(), static_cast<size_t>(memory->size())};
}

void CpuDevice::CopyToDevice(absl::Span<const float> from, DeviceMemory* to) {
  const auto size = static_cast<int64_t>(from.size());
  Run("CopyToDevice", {{to, size}}, [&] {
    if (from.data() != to->data()) std::copy_n(from.data(), size, to->data());
  });
}

absl::Status CpuDevice::CopyToHost(const DeviceMemory& from, absl::Span<float> to) {
  const auto size = static_cast<int64_t>(to.size());
  Run("CopyToHost", {{&from, size}}, [&] {
    if (from.data() != to.data()) std::copy_n(from.data(), size, to.data());
  });
  return status_;
}

void CpuDevice::Fill(float value, int64_t n, DeviceMemory* x) {
  Run("Fill", {{x, n}}, [&] { std::fill_n(x->data(), n, value); });
}

void CpuDevice::MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
                       DeviceMemory* c) {
  const int64_t m = args.m, n = args.n, k = args.k;
  Run("MatMul", {{&a, m * k}, {&b, k * n}, {c, m * n}}, [&] {
    if (m * n * k < kMinParallelProducts) omp_set_num_threads(1);
    const dnnl_status_t status = dnnl_sgemm(
        args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', m, n, k, args.alpha, a.data(),
        args.transpose_a ? m : k, b.data(), args.transpose_b ? k : n, args.beta, c->data(), n);
    if (status != dnnl_success) throw dnnl::error(status, "could not multiply matrices");
  });
}

void CpuDevice::AddBias(int64_t rows, int64_t cols, const DeviceMemory& bias, DeviceMemory* y) {
  Run("AddBias", {{&bias, cols}, {y, rows * cols}},
      [&] { AddBiasToRows(rows, cols, bias.data(), y->data()); });
}

void CpuDevice::BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                             DeviceMemory* bias_gradient) {
  Run("BiasGradient", {{&dy, rows * cols}, {bias_gradient, cols}},
      [&] { SumRows(rows, cols, dy.data(), bias_gradient->data()); });
}

void CpuDevice::Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  Run("Axpy", {{&x, n}, {y, n}}, [&] { AddScaledTo(alpha, n, x.data(), y->data()); });
}

void CpuDevice::Scale(float alpha, int64_t n, DeviceMemory* x) {
  Run("Scale", {{x, n}}, [&] { ScaleBy(alpha, n, x->data()); });
}

void CpuDevice::Conv2D(const ConvGeometry& geometry, const DeviceMemory& x,
                       const DeviceMemory& filter, DeviceMemory* y) {
  Run("Conv2D",
      {{&x, geometry.in_size()}, {&filter, geometry.filter_size()}, {y, geometry.out_size()}},
      [&] { convolution_.Forward(geometry, x.data(), filter.data(), y->data()); });
}

void CpuDevice::Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                                   const DeviceMemory& dy, DeviceMemory* dx) {
  Run("Conv2DBackwardData",
      {{&filter, geometry.filter_size()}, {&dy, geometry.out_size()}, {dx, geometry.in_size()}},
      [&] { convolution_.BackwardData(geometry, dy.data(), filter.data(), dx->data()); });
}

void CpuDevice::Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                                     const DeviceMemory& dy, DeviceMemory* dfilter) {
  Run("Conv2DBackwardFilter",
      {{&x, geometry.in_size()}, {&dy, geometry.out_size()}, {dfilter, geometry.filter_size()}},
      [&] { convolution_.BackwardFilter(geometry, x.data(), dy.data(), dfilter->data()); });
}

void CpuDevice::MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  Run("MaxPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}},
      [&] { MaxPoolForward(geometry, x.data(), y->data()); });
}

void CpuDevice::MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x,
                                const DeviceMemory& y, const DeviceMemory& dy, DeviceMemory* dx) {
  Run("MaxPoolBackward",
      {{&x, geometry.in_size()},
       {&y, geometry.out_size()},
       {&dy, geometry.out_size()},
       {dx, geometry.in_size()}},
      [&] { keelson::MaxPoolBackward(geometry, x.data(), y.data(), dy.data(), dx->data()); });
}

void CpuDevice::AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) {
  Run("AvgPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}},
      [&] { AvgPoolForward(geometry, x.data(), y->data()); });
}

void CpuDevice::AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                                DeviceMemory* dx) {
  Run("AvgPoolBackward", {{&dy, geometry.out_size()}, {dx, geometry.in_size()}},
      [&] { keelson::AvgPoolBackward(geometry, dy.data(), dx->data()); });
}

void CpuDevice::Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) {
  Run("Activate", {{&x, n}, {y, n}}, [&] { ActivationForward(kind, n, x.data(), y->data()); });
}

void CpuDevice::ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                                 const DeviceMemory& dy, DeviceMemory* dx) {
  Run("ActivateBackward", {{&y, n}, {&dy, n}, {dx, n}},
      [&] { ActivationBackward(kind, n, y.data(), dy.data(), dx->data()); });
}

void CpuDevice::Dropout(float rate, uint64_t seed, int64_t n, const DeviceMemory& x,
                        DeviceMemory* y) {
  Run("Dropout", {{&x, n}, {y, n}}, [&] { DropoutForward(rate, seed, n, x.data(), y->data()); });
}

void CpuDevice::SoftmaxCrossEntropy(int64_t rows, int64_t classes, const DeviceMemory& scores,
                                    const DeviceMemory& labels, DeviceMemory* losses,
                                    DeviceMemory* dscores) {
  Run("SoftmaxCrossEntropy",
      {{&scores, rows * classes}, {&labels, rows}, {losses, rows}, {dscores, rows * classes}}, [&] {
        SoftmaxCrossEntropyLoss(rows, classes, scores.data(), labels.data(), losses->data(),
                                DataOrNull(dscores));
      });
}

void CpuDevice::SigmoidCrossEntropy(int64_t rows, const DeviceMemory& scores,
                                    const DeviceMemory& labels, DeviceMemory* losses,
                                    DeviceMemory* dscores) {
  Run("SigmoidCrossEntropy", {{&scores, rows}, {&labels, rows}, {losses, rows}, {dscores, rows}},
      [&] {
        SigmoidCrossEntropyLoss(rows, scores.data(), labels.data(), losses->data(),
                                DataOrNull(dscores));
      });
}

void CpuDevice::MeanSquaredError(int64_t rows, const DeviceMemory& scores,
                                 const DeviceMemory& targets, DeviceMemory* losses,
                                 DeviceMemory* dscores) {
  Run("MeanSquaredError", {{&scores, rows}, {&targets, rows}, {losses, rows}, {dscores, rows}},
      [&] {
        MeanSquaredErrorLoss(rows, scores.data(), targets.data(), losses->data(),
                             DataOrNull(dscores));
      });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateCpuDevice(int threads) {
  if (threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("device cpu: threads: expected >= 0, found ", threads));
  }
  try {
    return std::make_unique<CpuDevice>(threads == 0 ? AvailableCores() : threads);
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("device cpu: oneDNN: ", error.what()));
  }
}

}  // namespace keelson
