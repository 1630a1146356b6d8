// The results of gpu_bench, for readers and for programs.
#ifndef KEELSON_BENCH_GPU_REPORT_H_
#define KEELSON_BENCH_GPU_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "bench/goals.h"
#include "bench/gpu/cuda_limits.h"
#include "bench/gpu/kernels.h"
#include "bench/gpu/products.h"
#include "bench/gpu/step.h"
#include "bench/statistics.h"
#include "bench/table.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// Per second: bytes, or floating-point operations.
struct GpuLimits {
  Spread copy_by_kernel;
  Spread copy_by_memcpy;
  Spread host_to_device;
  Spread device_to_host;
  Spread both_directions;
  struct LargeProduct {
    Precision precision = Precision::kFloat32;
    Spread rate;
  };
  std::vector<LargeProduct> products;  // of `square` rows and columns
  int64_t square = 0;
};

// Empty: that part was not measured.
struct GpuResults {
  // The sizes are too small to mean anything: no goal is checked.
  bool smoke = false;
  GpuDescription gpu;
  std::optional<GpuLimits> limits;
  std::vector<ProductResult> products;
  std::vector<KernelResult> kernels;
  std::vector<StepMeasurement> steps;
};

// Checks those goals of docs/gpu.md for which there are measurements. The goal for steps is for
// depth 2 and a batch of 4096; that for an idle GPU is for steps that compute for longer than they
// transfer.
std::vector<GoalOutcome> CheckGpuGoals(const GpuResults& results);

// One after the other, goals first.
std::string GpuTables(const GpuResults& results, TableStyle style);

nlohmann::json GpuJson(const GpuResults& results);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_REPORT_H_
