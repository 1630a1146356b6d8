// The matrix products of a training step of dense layers, each beside the same product by cuBLASLt
// alone.
#ifndef KEELSON_BENCH_GPU_PRODUCTS_H_
#define KEELSON_BENCH_GPU_PRODUCTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/gpu/cuda_limits.h"
#include "bench/gpu/timing.h"
#include "core/device/device.h"
#include "core/device/precision.h"

namespace keelson::bench {

struct ProductResult {
  std::string name;  // "forward 4096 x 2048 x 2048"
  Precision precision = Precision::kFloat32;
  // Floating-point operations per second: of the device's operation, with what it does beside the
  // product (bias, ReLU, sums of the columns, conversion of operands), and of the plain call.
  Spread device;
  Spread plain;
};

struct DenseExtents {
  int64_t batch = 0;
  int64_t inputs = 0;
  int64_t units = 0;
};

// Forward (bias and ReLU), gradient of kernel and bias, gradient of the input; of a device of that
// precision.
absl::StatusOr<std::vector<ProductResult>> MeasureProducts(const DenseExtents& extents,
                                                           Precision precision, Device* device,
                                                           CudaLimits* limits,
                                                           const TimingOptions& timing);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_PRODUCTS_H_
