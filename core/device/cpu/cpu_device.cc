#include "core/device/cpu/cpu_device.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/available_cores.h"
#include "core/base/clock.h"
#include "core/device/cpu/batch_norm.h"
#include "core/device/cpu/convolution.h"
#include "core/device/cpu/elementwise.h"
#include "core/device/cpu/layer_norm.h"
#include "core/device/cpu/losses.h"
#include "core/device/cpu/pooling.h"
#include "core/device/cpu/reductions.h"
#include "core/device/cpu/rowwise.h"
#include "core/device/cpu/softmax.h"
#include "core/device/cpu/sparse_product.h"
#include "core/device/cpu/wire_transfer.h"
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

class CpuHostMemory : public HostMemory {
 public:
  // `buffer` holds `bytes` bytes, or a few more.
  CpuHostMemory(AlignedBuffer buffer, size_t bytes)
      : HostMemory({reinterpret_cast<uint8_t*>(buffer.data()), bytes}),
        buffer_(std::move(buffer)) {}

 private:
  const AlignedBuffer buffer_;
};

struct CpuEvent : DeviceEvent {
  // When the event was recorded last, by Clock::Monotonic.
  absl::Duration time;
};

// An operand and the elements that the operation touches.
struct Extent {
  const DeviceMemory* memory;  // null: not used
  int64_t size;
};

float* DataOrNull(const DeviceMemory* memory) {
  return memory == nullptr ? nullptr : memory->data();
}

absl::Status OutOfMemory(absl::string_view what) {
  return absl::ResourceExhaustedError(absl::StrCat("device cpu: out of memory allocating ", what));
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}

  std::string name() const override {
    const dnnl_version_t* version = dnnl_version();
    return absl::StrCat("cpu (oneDNN ", version->major, ".", version->minor, ", ", threads_,
                        threads_ == 1 ? " thread)" : " threads)");
  }

  bool asynchronous() const override { return false; }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) override {
    try {
      return std::make_unique<CpuMemory>(AlignedBuffer(floats));
    } catch (const std::bad_alloc&) {
      return OutOfMemory(absl::StrCat(floats, " floats"));
    }
  }

  absl::StatusOr<std::unique_ptr<HostMemory>> AllocateHost(size_t bytes) override {
    try {
      const auto floats = static_cast<int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
      return std::make_unique<CpuHostMemory>(AlignedBuffer::Uninitialized(floats), bytes);
    } catch (const std::bad_alloc&) {
      return OutOfMemory(absl::StrCat(bytes, " bytes of the host"));
    }
  }

  absl::Span<float> HostSpan(DeviceMemory* memory) override {
    return absl::MakeSpan(memory->data(), memory->size());
  }

  void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) override {
    const auto size = static_cast<int64_t>(from.size());
    Run("CopyToDevice", {{to, size}}, [&] {
      if (from.data() != to->data()) std::copy_n(from.data(), size, to->data());
    });
  }

  void CopyIntegersToDevice(absl::Span<const int32_t> from, DeviceMemory* to) override {
    Run("CopyIntegersToDevice", {{to, static_cast<int64_t>(from.size())}}, [&] {
      const void* const bytes = from.data();
      if (bytes == to->data() || from.empty()) return;
      std::memcpy(to->data(), bytes, from.size() * sizeof(int32_t));
    });
  }

  absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) override {
    const auto size = static_cast<int64_t>(to.size());
    Run("CopyToHost", {{&from, size}}, [&] {
      if (from.data() != to.data()) std::copy_n(from.data(), size, to.data());
    });
    return status_;
  }

  void Fill(float value, int64_t n, DeviceMemory* x) override {
    Run("Fill", {{x, n}}, [&] { std::fill_n(x->data(), n, value); });
  }

  absl::Status status() const override { return status_; }
  absl::Status Synchronize() override { return status_; }

  absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent() override {
    return std::make_unique<CpuEvent>();
  }

  void Record(DeviceEvent* event) override {
    static_cast<CpuEvent*>(event)->time = Clock::Real()->Monotonic();
  }

  void WaitFor(const DeviceEvent& /*event*/) override {}
  bool Passed(const DeviceEvent& /*event*/) override { return true; }
  absl::Status Await(const DeviceEvent& /*event*/) override { return status_; }

  double MillisecondsBetween(const DeviceEvent& from, const DeviceEvent& to) override {
    return absl::ToDoubleMilliseconds(static_cast<const CpuEvent&>(to).time -
                                      static_cast<const CpuEvent&>(from).time);
  }

  absl::StatusOr<std::unique_ptr<GradientEncoder>> NewGradientEncoder(
      const WireLayout& layout) override {
    try {
      return std::make_unique<CpuGradientEncoder>(layout);
    } catch (const std::bad_alloc&) {
      return OutOfMemory(absl::StrCat("the error feedback of ", layout.num_elements, " floats"));
    }
  }

  absl::StatusOr<std::unique_ptr<ValueDecoder>> NewValueDecoder(WireFormat format,
                                                                int64_t elements) override {
    return std::make_unique<CpuValueDecoder>(format, elements);
  }

  void Download(const DeviceMemory& gradient, const DeviceMemory* gate, GradientEncoder* encoder,
                absl::Span<uint8_t> to, DeviceEvent* done) override {
    auto& cpu_encoder = *static_cast<CpuGradientEncoder*>(encoder);
    if (FitsHost("Download", cpu_encoder.layout().bytes, to.size())) {
      Run("Download", {{&gradient, cpu_encoder.layout().num_elements}, {gate, 1}}, [&] {
        if (gate != nullptr && !std::isfinite(*gate->data())) return;
        cpu_encoder.Encode(gradient.data(), to.data());
      });
    }
    Record(done);
  }

  void Upload(absl::Span<const uint8_t> from, const DeviceEvent* /*after*/, ValueDecoder* decoder,
              DeviceMemory* to, DeviceEvent* done) override {
    const auto& cpu_decoder = *static_cast<const CpuValueDecoder*>(decoder);
    if (FitsHost("Upload", cpu_decoder.bytes(), from.size())) {
      Run("Upload", {{to, cpu_decoder.elements()}},
          [&] { cpu_decoder.Decode(from.data(), to->data()); });
    }
    Record(done);
  }

  void Repeat(uint64_t /*key*/, absl::FunctionRef<void()> operations) override { operations(); }

  void MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
              const Epilogue& epilogue, DeviceMemory* c) override {
    const int64_t m = args.m, n = args.n, k = args.k;
    Run("MatMul", {{&a, m * k}, {&b, k * n}, {epilogue.bias, n}, {c, m * n}}, [&] {
      MultiplyMatrices(args, a.data(), b.data(), c->data());
      AddBiasAndActivate(m, n, DataOrNull(epilogue.bias), epilogue.activation, c->data());
    });
  }

  void DenseGradients(int64_t rows, int64_t inputs, int64_t units, const DeviceMemory& x,
                      const DeviceMemory& dy, DeviceMemory* kernel_gradient,
                      DeviceMemory* bias_gradient) override {
    Run("DenseGradients",
        {{&x, rows * inputs},
         {&dy, rows * units},
         {kernel_gradient, inputs * units},
         {bias_gradient, units}},
        [&] {
          const MatMulArgs args{.m = inputs, .n = units, .k = rows, .transpose_a = true};
          MultiplyMatrices(args, x.data(), dy.data(), kernel_gradient->data());
          if (bias_gradient != nullptr) SumRows(rows, units, dy.data(), bias_gradient->data());
        });
  }

  void BiasGradient(int64_t rows, int64_t cols, const DeviceMemory& dy,
                    DeviceMemory* bias_gradient) override {
    Run("BiasGradient", {{&dy, rows * cols}, {bias_gradient, cols}},
        [&] { SumRows(rows, cols, dy.data(), bias_gradient->data()); });
  }

  void MultiplySparse(const SparseRows& a, int64_t width, const DeviceMemory& x, float beta,
                      DeviceMemory* y) override {
    Run("MultiplySparse", {{a.stored, 1}, {a.rows, a.capacity}, {a.offsets, a.capacity + 1}}, [&] {
      const HostSparseRows rows{*a.stored->integers(), a.rows->integers(), a.offsets->integers(),
                                a.columns->integers(), a.coefficients->data()};
      MultiplySparseRows(rows, width, x.data(), beta, y->data());
    });
  }

  void Axpy(float alpha, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    Run("Axpy", {{&x, n}, {y, n}}, [&] { AddScaledTo(alpha, n, x.data(), y->data()); });
  }

  void Scale(float alpha, int64_t n, DeviceMemory* x) override {
    Run("Scale", {{x, n}}, [&] { ScaleBy(alpha, n, x->data()); });
  }

  void Sum(int64_t n, const DeviceMemory& x, DeviceMemory* sum) override {
    Run("Sum", {{&x, n}, {sum, 1}}, [&] { *sum->data() = static_cast<float>(SumOf(n, x.data())); });
  }

  void ClipByGlobalNorm(float max_norm, absl::Span<DeviceMemory* const> gradients) override {
    Run("ClipByGlobalNorm", {}, [&] {
      double squares = 0;
      for (const DeviceMemory* gradient : gradients) {
        squares += SumOfSquares(gradient->size(), gradient->data());
      }
      const double norm = std::sqrt(squares);
      if (!std::isfinite(norm) || norm <= max_norm) return;
      for (DeviceMemory* gradient : gradients) {
        ScaleBy(static_cast<float>(max_norm / norm), gradient->size(), gradient->data());
      }
    });
  }

  void AddFromPeer(Device* /*peer*/, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    Run("AddFromPeer", {{&x, n}, {y, n}}, [&] { AddScaledTo(1, n, x.data(), y->data()); });
  }

  void Conv2D(const ConvGeometry& geometry, const DeviceMemory& x, const DeviceMemory& filter,
              const Epilogue& epilogue, DeviceMemory* y) override {
    Run("Conv2D",
        {{&x, geometry.in_size()},
         {&filter, geometry.filter_size()},
         {epilogue.bias, geometry.out_channels},
         {y, geometry.out_size()}},
        [&] {
          convolution_.Forward(geometry, x.data(), filter.data(), y->data());
          AddBiasAndActivate(geometry.batch * geometry.out_height * geometry.out_width,
                             geometry.out_channels, DataOrNull(epilogue.bias), epilogue.activation,
                             y->data());
        });
  }

  void Conv2DBackwardData(const ConvGeometry& geometry, const DeviceMemory& filter,
                          const DeviceMemory& dy, DeviceMemory* dx) override {
    Run("Conv2DBackwardData",
        {{&filter, geometry.filter_size()}, {&dy, geometry.out_size()}, {dx, geometry.in_size()}},
        [&] { convolution_.BackwardData(geometry, dy.data(), filter.data(), dx->data()); });
  }

  void Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dfilter) override {
    Run("Conv2DBackwardFilter",
        {{&x, geometry.in_size()}, {&dy, geometry.out_size()}, {dfilter, geometry.filter_size()}},
        [&] { convolution_.BackwardFilter(geometry, x.data(), dy.data(), dfilter->data()); });
  }

  void MaxPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override {
    Run("MaxPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}},
        [&] { MaxPoolForward(geometry, x.data(), y->data()); });
  }

  void MaxPoolBackward(const PoolGeometry& geometry, const DeviceMemory& x, const DeviceMemory& y,
                       const DeviceMemory& dy, DeviceMemory* dx) override {
    Run("MaxPoolBackward",
        {{&x, geometry.in_size()},
         {&y, geometry.out_size()},
         {&dy, geometry.out_size()},
         {dx, geometry.in_size()}},
        [&] { keelson::MaxPoolBackward(geometry, x.data(), y.data(), dy.data(), dx->data()); });
  }

  void AvgPool(const PoolGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override {
    Run("AvgPool", {{&x, geometry.in_size()}, {y, geometry.out_size()}},
        [&] { AvgPoolForward(geometry, x.data(), y->data()); });
  }

  void AvgPoolBackward(const PoolGeometry& geometry, const DeviceMemory& dy,
                       DeviceMemory* dx) override {
    Run("AvgPoolBackward", {{&dy, geometry.out_size()}, {dx, geometry.in_size()}},
        [&] { keelson::AvgPoolBackward(geometry, dy.data(), dx->data()); });
  }

  void GlobalAveragePool(int64_t rows, int64_t positions, int64_t channels, const DeviceMemory& x,
                         DeviceMemory* y) override {
    Run("GlobalAveragePool", {{&x, rows * positions * channels}, {y, rows * channels}},
        [&] { GlobalAverage(rows, positions, channels, x.data(), y->data()); });
  }

  void GlobalAveragePoolBackward(int64_t rows, int64_t positions, int64_t channels,
                                 const DeviceMemory& dy, DeviceMemory* dx) override {
    Run("GlobalAveragePoolBackward", {{&dy, rows * channels}, {dx, rows * positions * channels}},
        [&] { GlobalAverageGradient(rows, positions, channels, dy.data(), dx->data()); });
  }

  void Add(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) override {
    Run("Add", {{&a, n}, {&b, n}, {y, n}}, [&] { SumOfTwo(n, a.data(), b.data(), y->data()); });
  }

  void Multiply(int64_t n, const DeviceMemory& a, const DeviceMemory& b, DeviceMemory* y) override {
    Run("Multiply", {{&a, n}, {&b, n}, {y, n}},
        [&] { ProductOfTwo(n, a.data(), b.data(), y->data()); });
  }

  void InverseSquareRoot(int64_t n, float epsilon, const DeviceMemory& x,
                         DeviceMemory* y) override {
    Run("InverseSquareRoot", {{&x, n}, {y, n}},
        [&] { InverseSquareRoots(n, epsilon, x.data(), y->data()); });
  }

  void Activate(ActivationKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    Run("Activate", {{&x, n}, {y, n}}, [&] { ActivationForward(kind, n, x.data(), y->data()); });
  }

  void ActivateBackward(ActivationKind kind, int64_t n, const DeviceMemory& y,
                        const DeviceMemory& dy, DeviceMemory* dx) override {
    Run("ActivateBackward", {{&y, n}, {&dy, n}, {dx, n}},
        [&] { ActivationBackward(kind, n, y.data(), dy.data(), dx->data()); });
  }

  void Gate(GateKind kind, int64_t n, const DeviceMemory& x, DeviceMemory* y) override {
    Run("Gate", {{&x, n}, {y, n}}, [&] { GateForward(kind, n, x.data(), y->data()); });
  }

  void GateBackward(GateKind kind, int64_t n, const DeviceMemory& x, const DeviceMemory& dy,
                    DeviceMemory* dx) override {
    Run("GateBackward", {{&x, n}, {&dy, n}, {dx, n}},
        [&] { GateGradient(kind, n, x.data(), dy.data(), dx->data()); });
  }

  void SetSeed(uint64_t seed) override { seed_ = seed; }

  void Dropout(float rate, uint64_t stream, int64_t n, const DeviceMemory& x,
               DeviceMemory* y) override {
    Run("Dropout", {{&x, n}, {y, n}},
        [&] { DropoutForward(rate, seed_, stream, n, x.data(), y->data()); });
  }

  void CopyColumns(int64_t rows, int64_t columns, const DeviceMemory& from, int64_t from_columns,
                   int64_t from_begin, DeviceMemory* to, int64_t to_columns,
                   int64_t to_begin) override {
    Run("CopyColumns", {{&from, rows * from_columns}, {to, rows * to_columns}}, [&] {
      CopyBlock(rows, columns, from.data() + from_begin, from_columns, to->data() + to_begin,
                to_columns);
    });
  }

  void Transpose(const TransposeGeometry& geometry, const DeviceMemory& x,
                 DeviceMemory* y) override {
    Run("Transpose", {{&x, geometry.size()}, {y, geometry.size()}},
        [&] { TransposeAxes(geometry, x.data(), y->data()); });
  }

  void ScaleRows(int64_t rows, int64_t columns, const DeviceMemory& factors,
                 DeviceMemory* x) override {
    Run("ScaleRows", {{&factors, rows}, {x, rows * columns}},
        [&] { ScaleEachRow(rows, columns, factors.data(), x->data()); });
  }

  void AddRowVector(int64_t rows, int64_t columns, float alpha, const DeviceMemory& v,
                    DeviceMemory* x) override {
    Run("AddRowVector", {{&v, columns}, {x, rows * columns}},
        [&] { AddToEachRow(rows, columns, alpha, v.data(), x->data()); });
  }

  void RowDots(int64_t rows, int64_t columns, float alpha, const DeviceMemory& a,
               const DeviceMemory& b, float beta, DeviceMemory* y) override {
    const int64_t size = rows * columns;
    Run("RowDots", {{&a, size}, {&b, size}, {y, rows}},
        [&] { DotEachRow(rows, columns, alpha, a.data(), b.data(), beta, y->data()); });
  }

  void AddScaledRows(int64_t rows, int64_t columns, float alpha, const DeviceMemory& factors,
                     const DeviceMemory& x, float beta, DeviceMemory* y) override {
    const int64_t size = rows * columns;
    Run("AddScaledRows", {{&factors, rows}, {&x, size}, {y, size}},
        [&] { AddEachRowScaled(rows, columns, alpha, factors.data(), x.data(), beta, y->data()); });
  }

  void PairwiseDots(const PairGeometry& geometry, const DeviceMemory& x, DeviceMemory* y) override {
    const int64_t size = geometry.rows * geometry.vectors * geometry.dim;
    Run("PairwiseDots", {{&x, size}, {y, geometry.rows * geometry.pairs()}},
        [&] { DotPairs(geometry, x.data(), y->data()); });
  }

  void PairwiseDotsBackward(const PairGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dx) override {
    const int64_t size = geometry.rows * geometry.vectors * geometry.dim;
    Run("PairwiseDotsBackward", {{&x, size}, {&dy, geometry.rows * geometry.pairs()}, {dx, size}},
        [&] { DotPairsBackward(geometry, x.data(), dy.data(), dx->data()); });
  }

  void Softmax(int64_t rows, int64_t columns, const DeviceMemory& x, DeviceMemory* y) override {
    const int64_t size = rows * columns;
    Run("Softmax", {{&x, size}, {y, size}},
        [&] { SoftmaxForward(rows, columns, x.data(), y->data()); });
  }

  void SoftmaxBackward(int64_t rows, int64_t columns, const DeviceMemory& y, const DeviceMemory& dy,
                       DeviceMemory* dx) override {
    const int64_t size = rows * columns;
    Run("SoftmaxBackward", {{&y, size}, {&dy, size}, {dx, size}},
        [&] { SoftmaxGradient(rows, columns, y.data(), dy.data(), dx->data()); });
  }

  void BatchNorm(const BatchNormGeometry& geometry, const DeviceMemory& x,
                 const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                 DeviceMemory* variance, DeviceMemory* y) override {
    const int64_t channels = geometry.channels, size = geometry.rows * channels;
    Run("BatchNorm",
        {{&x, size},
         {gamma, channels},
         {beta, channels},
         {mean, channels},
         {variance, channels},
         {y, size}},
        [&] {
          BatchNormForward(geometry, x.data(), DataOrNull(gamma), DataOrNull(beta), mean->data(),
                           variance->data(), y->data());
        });
  }

  void BatchNormBackward(const BatchNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory& mean,
                         const DeviceMemory& variance, const DeviceMemory& dy, DeviceMemory* dgamma,
                         DeviceMemory* dbeta, DeviceMemory* dx) override {
    const int64_t channels = geometry.channels, size = geometry.rows * channels;
    Run("BatchNormBackward",
        {{&x, size},
         {gamma, channels},
         {&mean, channels},
         {&variance, channels},
         {&dy, size},
         {dgamma, channels},
         {dbeta, channels},
         {dx, size}},
        [&] {
          BatchNormGradients(geometry, x.data(), DataOrNull(gamma), mean.data(), variance.data(),
                             dy.data(), DataOrNull(dgamma), DataOrNull(dbeta), DataOrNull(dx));
        });
  }

  void BatchNormInference(const BatchNormGeometry& geometry, const DeviceMemory& x,
                          const DeviceMemory* gamma, const DeviceMemory* beta,
                          const DeviceMemory& mean, const DeviceMemory& variance,
                          DeviceMemory* y) override {
    const int64_t channels = geometry.channels, size = geometry.rows * channels;
    Run("BatchNormInference",
        {{&x, size},
         {gamma, channels},
         {beta, channels},
         {&mean, channels},
         {&variance, channels},
         {y, size}},
        [&] {
          BatchNormWithStatistics(geometry, x.data(), DataOrNull(gamma), DataOrNull(beta),
                                  mean.data(), variance.data(), y->data());
        });
  }

  void LayerNorm(const LayerNormGeometry& geometry, const DeviceMemory& x,
                 const DeviceMemory* gamma, const DeviceMemory* beta, DeviceMemory* mean,
                 DeviceMemory* inverse_deviation, DeviceMemory* y) override {
    const int64_t rows = geometry.rows, features = geometry.features, size = rows * features;
    Run("LayerNorm",
        {{&x, size},
         {gamma, features},
         {beta, features},
         {mean, rows},
         {inverse_deviation, rows},
         {y, size}},
        [&] {
          LayerNormForward(geometry, x.data(), DataOrNull(gamma), DataOrNull(beta),
                           DataOrNull(mean), DataOrNull(inverse_deviation), y->data());
        });
  }

  void LayerNormBackward(const LayerNormGeometry& geometry, const DeviceMemory& x,
                         const DeviceMemory* gamma, const DeviceMemory& mean,
                         const DeviceMemory& inverse_deviation, const DeviceMemory& dy,
                         DeviceMemory* dgamma, DeviceMemory* dbeta, DeviceMemory* dx) override {
    const int64_t rows = geometry.rows, features = geometry.features, size = rows * features;
    Run("LayerNormBackward",
        {{&x, size},
         {gamma, features},
         {&mean, rows},
         {&inverse_deviation, rows},
         {&dy, size},
         {dgamma, features},
         {dbeta, features},
         {dx, size}},
        [&] {
          LayerNormGradients(geometry, x.data(), DataOrNull(gamma), mean.data(),
                             inverse_deviation.data(), dy.data(), DataOrNull(dgamma),
                             DataOrNull(dbeta), DataOrNull(dx));
        });
  }

  void SoftmaxCrossEntropy(int64_t rows, int64_t classes, float weight, const DeviceMemory& scores,
                           const DeviceMemory& labels, DeviceMemory* losses,
                           DeviceMemory* dscores) override {
    Run("SoftmaxCrossEntropy",
        {{&scores, rows * classes}, {&labels, rows}, {losses, rows}, {dscores, rows * classes}},
        [&] {
          SoftmaxCrossEntropyLoss(rows, classes, weight, scores.data(), labels.data(),
                                  losses->data(), DataOrNull(dscores));
        });
  }

  void SigmoidCrossEntropy(int64_t rows, float weight, const DeviceMemory& scores,
                           const DeviceMemory& labels, DeviceMemory* losses,
                           DeviceMemory* dscores) override {
    Run("SigmoidCrossEntropy", {{&scores, rows}, {&labels, rows}, {losses, rows}, {dscores, rows}},
        [&] {
          SigmoidCrossEntropyLoss(rows, weight, scores.data(), labels.data(), losses->data(),
                                  DataOrNull(dscores));
        });
  }

  void MeanSquaredError(int64_t rows, float weight, const DeviceMemory& scores,
                        const DeviceMemory& targets, DeviceMemory* losses,
                        DeviceMemory* dscores) override {
    Run("MeanSquaredError", {{&scores, rows}, {&targets, rows}, {losses, rows}, {dscores, rows}},
        [&] {
          MeanSquaredErrorLoss(rows, weight, scores.data(), targets.data(), losses->data(),
                               DataOrNull(dscores));
        });
  }

  void HuberLoss(int64_t rows, float delta, float weight, const DeviceMemory& scores,
                 const DeviceMemory& targets, DeviceMemory* losses,
                 DeviceMemory* dscores) override {
    Run("HuberLoss", {{&scores, rows}, {&targets, rows}, {losses, rows}, {dscores, rows}}, [&] {
      HuberLosses(rows, delta, weight, scores.data(), targets.data(), losses->data(),
                  DataOrNull(dscores));
    });
  }

 private:
  // Runs `f` with this device's threads, unless an earlier operation failed or an operand is too
  // small; what `f` throws becomes the device's status.
  template <typename F>
  void Run(const char* operation, std::initializer_list<Extent> extents, F f) {
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

  bool Fits(const char* operation, std::initializer_list<Extent> extents) {
    for (const Extent& extent : extents) {
      if (extent.memory == nullptr || extent.size <= extent.memory->size()) continue;
      status_ =
          absl::InternalError(absl::StrCat("device cpu: ", operation, ": expected memory of ",
                                           extent.size, " floats, found ", extent.memory->size()));
      return false;
    }
    return true;
  }

  // Whether `found` bytes of the host are enough; if not, sets the device's status.
  bool FitsHost(const char* operation, size_t expected, size_t found) {
    if (!status_.ok()) return false;
    if (found >= expected) return true;
    status_ = absl::InternalError(absl::StrCat("device cpu: ", operation, ": expected ", expected,
                                               " bytes of the host, found ", found));
    return false;
  }

  void MultiplyMatrices(const MatMulArgs& args, const float* a, const float* b, float* c) {
    const int64_t m = args.m, n = args.n, k = args.k;
    if (m == 0 || n == 0) return;
    if (k == 0) {
      if (args.beta == 0) {
        std::fill_n(c, m * n, 0.0f);
      } else {
        ScaleBy(args.beta, m * n, c);
      }
      return;
    }
    if (m * n * k < kMinParallelProducts) omp_set_num_threads(1);
    const dnnl_status_t status =
        dnnl_sgemm(args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', m, n, k, args.alpha,
                   a, args.transpose_a ? m : k, b, args.transpose_b ? k : n, args.beta, c, n);
    omp_set_num_threads(threads_);
    if (status != dnnl_success) throw dnnl::error(status, "could not multiply matrices");
  }

  const int threads_;
  uint64_t seed_ = 0;
  absl::Status status_;
  Convolution convolution_;
};

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
