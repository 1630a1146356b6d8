// The command line of gpu_bench.
#ifndef KEELSON_BENCH_GPU_OPTIONS_H_
#define KEELSON_BENCH_GPU_OPTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "bench/gpu/products.h"
#include "bench/gpu/step.h"
#include "bench/gpu/timing.h"
#include "core/device/precision.h"

namespace keelson::bench {

// --smoke sets the sizes, too: then they are too small for meaningful figures.
struct GpuBenchOptions {
  enum class Format { kText, kMarkdown, kJson };

  int ordinal = 0;
  // Which of "limits", "products", "kernels", "step" are measured.
  std::vector<std::string> parts;
  std::vector<Precision> precisions;
  bool smoke = false;
  // Only prints the description of the GPU.
  bool probe = false;
  Format format = Format::kText;

  TimingOptions timing;
  int64_t copy_bytes = 0;    // of a copy within the GPU
  int64_t cross_bytes = 0;   // of a copy from or to the host
  int64_t tensor_bytes = 0;  // of what kernels work on
  int64_t square = 0;        // rows and columns of the large product
  DenseExtents dense;
  StepBenchOptions step;
  std::vector<StepCase> steps;

  bool Measures(const std::string& part) const;
};

// An int: only to exit with that code is left to do: help was printed, or a usage error.
std::variant<GpuBenchOptions, int> ParseGpuBenchOptions(int argc, const char* const* argv);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_OPTIONS_H_
