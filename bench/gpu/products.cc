#include "bench/gpu/products.h"

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "bench/gpu/random_memory.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

class ProductBench {
 public:
  ProductBench(const DenseExtents& extents, Precision precision, Device* device, CudaLimits* limits,
               const TimingOptions& timing)
      : extents_(extents),
        precision_(precision),
        device_(device),
        limits_(limits),
        timing_(timing) {}

  absl::StatusOr<std::vector<ProductResult>> Run() {
    const auto& [batch, inputs, units] = extents_;
    ASSIGN_OR_RETURN(timer_, NewDeviceTimer(device_));
    ASSIGN_OR_RETURN(const auto x, RandomMemory(device_, batch * inputs));
    ASSIGN_OR_RETURN(const auto kernel, RandomMemory(device_, inputs * units));
    ASSIGN_OR_RETURN(const auto bias, RandomMemory(device_, units));
    ASSIGN_OR_RETURN(const auto dy, RandomMemory(device_, batch * units));
    ASSIGN_OR_RETURN(const auto y, device_->Allocate(batch * units));
    ASSIGN_OR_RETURN(const auto dx, device_->Allocate(batch * inputs));
    ASSIGN_OR_RETURN(const auto kernel_gradient, device_->Allocate(inputs * units));
    ASSIGN_OR_RETURN(const auto bias_gradient, device_->Allocate(units));

    const MatMulArgs forward = {.m = batch, .n = units, .k = inputs};
    RETURN_IF_ERROR(Measure("forward", forward, [&] {
      device_->MatMul(forward, *x, *kernel, {bias.get(), ActivationKind::kRelu}, y.get());
    }));
    const MatMulArgs kernel_product = {.m = inputs, .n = units, .k = batch, .transpose_a = true};
    RETURN_IF_ERROR(Measure("kernel gradient", kernel_product, [&] {
      device_->DenseGradients(batch, inputs, units, *x, *dy, kernel_gradient.get(),
                              bias_gradient.get());
    }));
    const MatMulArgs input_product = {.m = batch, .n = inputs, .k = units, .transpose_b = true};
    RETURN_IF_ERROR(Measure("input gradient", input_product,
                            [&] { device_->MatMul(input_product, *dy, *kernel, {}, dx.get()); }));
    return std::move(results_);
  }

 private:
  absl::Status Measure(const std::string& name, const MatMulArgs& args,
                       absl::FunctionRef<void()> operation) {
    ProductResult result;
    result.name = absl::StrCat(name, " ", args.m, " x ", args.n, " x ", args.k);
    result.precision = precision_;
    const double operations = 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) *
                              static_cast<double>(args.k);
    ASSIGN_OR_RETURN(const Spread milliseconds,
                     MillisecondsPerCall(timing_, timer_.get(), operation));
    result.device = PerSecond(operations, milliseconds);
    ASSIGN_OR_RETURN(result.plain, limits_->Product(precision_, args));
    results_.push_back(std::move(result));
    return absl::OkStatus();
  }

  const DenseExtents extents_;
  const Precision precision_;
  Device* const device_;
  CudaLimits* const limits_;
  const TimingOptions timing_;
  std::unique_ptr<GpuTimer> timer_;
  std::vector<ProductResult> results_;
};

}  // namespace

absl::StatusOr<std::vector<ProductResult>> MeasureProducts(const DenseExtents& extents,
                                                           Precision precision, Device* device,
                                                           CudaLimits* limits,
                                                           const TimingOptions& timing) {
  return ProductBench(extents, precision, device, limits, timing).Run();
}

}  // namespace keelson::bench
