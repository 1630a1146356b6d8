// gpu_bench: measures a GPU and what Keelson makes of it; docs/gpu.md.

#include <signal.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "bench/gpu/cuda_limits.h"
#include "bench/gpu/kernel_launches.h"
#include "bench/gpu/kernels.h"
#include "bench/gpu/options.h"
#include "bench/gpu/products.h"
#include "bench/gpu/report.h"
#include "bench/gpu/step.h"
#include "bench/peer_role.h"
#include "bench/roles.h"
#include "core/base/allocator.h"
#include "core/base/exit_code.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/device/factory/device_factory.h"

namespace keelson::bench {
namespace {

absl::StatusOr<std::unique_ptr<Device>> DeviceOf(const GpuBenchOptions& options,
                                                 Precision precision) {
  DeviceOptions device_options;
  device_options.precision = precision;
  return CreateDevice(options.step.device, device_options);
}

absl::Status MeasureLimits(const GpuBenchOptions& options, CudaLimits* limits,
                           GpuResults* results) {
  LogInfo("limits");
  GpuLimits found;
  ASSIGN_OR_RETURN(found.copy_by_kernel, limits->CopyByKernel(options.copy_bytes));
  ASSIGN_OR_RETURN(found.copy_by_memcpy, limits->CopyByMemcpy(options.copy_bytes));
  ASSIGN_OR_RETURN(found.host_to_device, limits->HostToDevice(options.cross_bytes));
  ASSIGN_OR_RETURN(found.device_to_host, limits->DeviceToHost(options.cross_bytes));
  ASSIGN_OR_RETURN(found.both_directions, limits->BothDirections(options.cross_bytes));
  found.square = options.square;
  const MatMulArgs square = {.m = options.square, .n = options.square, .k = options.square};
  for (const Precision precision : options.precisions) {
    ASSIGN_OR_RETURN(const Spread rate, limits->Product(precision, square));
    found.products.push_back({precision, rate});
  }
  results->limits = std::move(found);
  return absl::OkStatus();
}

absl::Status MeasureAllProducts(const GpuBenchOptions& options, CudaLimits* limits,
                                GpuResults* results) {
  for (const Precision precision : options.precisions) {
    LogInfo("products, ", PrecisionName(precision));
    ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, DeviceOf(options, precision));
    ASSIGN_OR_RETURN(
        std::vector<ProductResult> found,
        MeasureProducts(options.dense, precision, device.get(), limits, options.timing));
    for (ProductResult& result : found) results->products.push_back(std::move(result));
  }
  return absl::OkStatus();
}

absl::Status MeasureAllKernels(const GpuBenchOptions& options, GpuResults* results) {
  LogInfo("kernels");
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, DeviceOf(options, Precision::kFloat32));
  ASSIGN_OR_RETURN(results->kernels,
                   MeasureKernels(options.tensor_bytes, device.get(), options.timing));
  ASSIGN_OR_RETURN(std::vector<KernelResult> launches,
                   MeasureKernelLaunches(options.ordinal, options.tensor_bytes, options.timing));
  for (KernelResult& result : launches) results->kernels.push_back(std::move(result));
  return absl::OkStatus();
}

absl::Status MeasureAllSteps(const GpuBenchOptions& options, GpuResults* results) {
  for (const StepCase& step : options.steps) {
    LogInfo("step: ", step.name, ", batch ", step.batch, ", ", PrecisionName(step.precision));
    ASSIGN_OR_RETURN(StepMeasurement found, MeasureStep(step, options.step));
    results->steps.push_back(std::move(found));
  }
  return absl::OkStatus();
}

// The first failure; the other parts are measured all the same.
absl::Status MeasureParts(const GpuBenchOptions& options, CudaLimits* limits, GpuResults* results) {
  absl::Status status;
  const auto note = [&](const char* part, const absl::Status& found) {
    if (found.ok()) return;
    LogError(part, ": ", found.message());
    status.Update(found);
  };
  if (options.Measures("limits")) note("limits", MeasureLimits(options, limits, results));
  if (options.Measures("products")) note("products", MeasureAllProducts(options, limits, results));
  if (options.Measures("kernels")) note("kernels", MeasureAllKernels(options, results));
  if (options.Measures("step")) note("step", MeasureAllSteps(options, results));
  return status;
}

void Print(const GpuBenchOptions& options, const GpuResults& results) {
  using Format = GpuBenchOptions::Format;
  const std::string warning =
      options.smoke ? "smoke: tiny sizes; these figures say nothing about the GPU\n\n" : "";
  const TableStyle style =
      options.format == Format::kMarkdown ? TableStyle::kMarkdown : TableStyle::kText;
  const bool json = options.format == Format::kJson;
  (json ? std::cerr : std::cout) << warning << GpuTables(results, style);
  if (json) std::cout << GpuJson(results).dump(2) << std::endl;
}

absl::Status Measure(const GpuBenchOptions& options) {
  GpuResults results;
  results.smoke = options.smoke;
  ASSIGN_OR_RETURN(results.gpu, DescribeGpu(options.ordinal));
  LogInfo(absl::StrFormat(
      "%s, compute capability %d.%d, %.0f GB, driver for CUDA %d.%d", results.gpu.name,
      results.gpu.compute_capability / 10, results.gpu.compute_capability % 10,
      static_cast<double>(results.gpu.memory_bytes) / 1e9, results.gpu.driver_version / 1000,
      results.gpu.driver_version % 1000 / 10));
  if (options.probe) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<CudaLimits> limits,
                   CudaLimits::Create(options.ordinal, options.timing));
  const absl::Status status = MeasureParts(options, limits.get(), &results);
  Print(options, results);
  return status;
}

int Run(int argc, char** argv) {
  const auto parsed = ParseGpuBenchOptions(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const absl::Status status = Measure(std::get<GpuBenchOptions>(parsed));
  if (!status.ok()) LogError(status.message());
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  signal(SIGPIPE, SIG_IGN);
  // Not a command for people: how the program starts its other processes.
  if (argc == 3 && absl::string_view(argv[1]) == "peer") {
    keelson::SetLogName("peer");
    return keelson::bench::RunPeer(argv[2], keelson::bench::MakeRole);
  }
  keelson::TuneAllocator();
  keelson::SetLogName("gpu_bench");
  return keelson::bench::Run(argc, argv);
}
