#include "bench/gpu/kernel_launches.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "bench/gpu/cuda_handles.h"
#include "bench/gpu/random_memory.h"
#include "core/base/status_macros.h"
#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/wire_tables.h"
#include "core/wire/wire_format.h"
#include "core/wire/wire_layout.h"

namespace keelson::bench {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
// As the blocks of a large variable on the servers.
constexpr int64_t kBlockElements = 1 << 18;
constexpr double kTopKFraction = 0.01;

WireLayout LayoutOf(WireFormat format, int64_t n) {
  WireLayout layout;
  layout.format = format;
  layout.num_elements = n;
  for (int64_t first = 0; first < n; first += kBlockElements) {
    WireBlock block;
    block.first_element = first;
    block.num_elements = std::min(kBlockElements, n - first);
    block.offset = layout.bytes;
    if (format == WireFormat::kTopK) {
      block.top_k_count =
          std::max<int64_t>(1, static_cast<int64_t>(kTopKFraction * block.num_elements));
    }
    const size_t bytes = format == WireFormat::kTopK ? TopKBytes(block.top_k_count)
                                                     : EncodedBytes(format, block.num_elements);
    layout.bytes += (bytes + 3) / 4 * 4;
    layout.blocks.push_back(block);
  }
  return layout;
}

// Images of 28 x 28 with 32 channels, and 3 x 3 filters with padding: 9 floats of columns for each
// float of images.
ConvGeometry ConvolutionOf(int64_t columns) {
  ConvGeometry geometry;
  geometry.in_height = geometry.in_width = geometry.out_height = geometry.out_width = 28;
  geometry.in_channels = geometry.out_channels = 32;
  geometry.kernel = 3;
  geometry.pad_top = geometry.pad_left = 1;
  geometry.batch = 1;
  geometry.batch = std::max<int64_t>(1, columns / (9 * geometry.in_size()));
  return geometry;
}

// A layout's tables on the GPU.
class DeviceTables {
 public:
  absl::Status Create(const WireLayout& layout) {
    const cuda::WireTableContents contents = cuda::MakeWireTables(layout);
    RETURN_IF_ERROR(Put(contents.tiles, &tiles_));
    RETURN_IF_ERROR(Put(contents.blocks, &blocks_));
    RETURN_IF_ERROR(Checked("cudaDeviceSynchronize", cudaDeviceSynchronize()));
    tables_.tiles = tiles_.as<cuda::WireTile>();
    tables_.num_tiles = static_cast<int64_t>(contents.tiles.size());
    tables_.blocks = blocks_.as<cuda::WireTopKBlock>();
    tables_.num_blocks = static_cast<int64_t>(contents.blocks.size());
    return absl::OkStatus();
  }
  const cuda::WireTables& get() const { return tables_; }

 private:
  template <typename T>
  static absl::Status Put(const std::vector<T>& from, GpuMemory* to) {
    if (from.empty()) return absl::OkStatus();
    const size_t bytes = from.size() * sizeof(T);
    RETURN_IF_ERROR(to->Allocate(bytes));
    return Checked("cudaMemcpy",
                   cudaMemcpy(to->as<T>(), from.data(), bytes, cudaMemcpyHostToDevice));
  }

  GpuMemory tiles_;
  GpuMemory blocks_;
  cuda::WireTables tables_ = {};
};

class LaunchBench {
 public:
  LaunchBench(int64_t tensor_bytes, const TimingOptions& timing)
      : n_(tensor_bytes / kFloatBytes), timing_(timing) {}

  absl::StatusOr<std::vector<KernelResult>> Run() {
    RETURN_IF_ERROR(Open());
    RETURN_IF_ERROR(Epilogues());
    RETURN_IF_ERROR(Conversions());
    RETURN_IF_ERROR(Columns());
    RETURN_IF_ERROR(Encoders());
    RETURN_IF_ERROR(TopK());
    return std::move(results_);
  }

 private:
  absl::Status Open() {
    RETURN_IF_ERROR(stream_.Create());
    const size_t bytes = n_ * kFloatBytes;
    RETURN_IF_ERROR(x_.Allocate(bytes));
    RETURN_IF_ERROR(y_.Allocate(bytes));
    RETURN_IF_ERROR(Checked("cudaMemset", cudaMemset(y_.as<void>(), 0, bytes)));
    RETURN_IF_ERROR(residual_.Allocate(bytes));
    const std::vector<float> numbers = RandomNumbers(n_);
    RETURN_IF_ERROR(Checked(
        "cudaMemcpy", cudaMemcpy(x_.as<float>(), numbers.data(), bytes, cudaMemcpyHostToDevice)));
    RETURN_IF_ERROR(Checked("cudaMemset", cudaMemset(residual_.as<void>(), 0, bytes)));
    return Checked("cudaDeviceSynchronize", cudaDeviceSynchronize());
  }

  absl::Status Epilogues() {
    constexpr int64_t kColumns = 2048;
    const int64_t rows = n_ / kColumns;
    return Measure("bias and relu, 2048 columns", "y twice",
                   2.0 * static_cast<double>(rows * kColumns * kFloatBytes), [&] {
                     return cuda::LaunchBiasActivation(stream_.get(), rows, kColumns,
                                                       x_.as<float>(), ActivationKind::kRelu,
                                                       y_.as<float>());
                   });
  }

  absl::Status Conversions() {
    const double bytes = 1.5 * static_cast<double>(n_ * kFloatBytes);
    RETURN_IF_ERROR(Measure("float32 to bfloat16", "x, half y", bytes, [&] {
      return cuda::LaunchToBfloat16(stream_.get(), n_, x_.as<float>(), y_.as<uint16_t>());
    }));
    RETURN_IF_ERROR(Measure("decode bfloat16", "half x, y", bytes, [&] {
      return cuda::LaunchDecodeBfloat16(stream_.get(), n_, x_.as<uint8_t>(), y_.as<float>());
    }));
    return Measure("decode float16", "half x, y", bytes, [&] {
      return cuda::LaunchDecodeFloat16(stream_.get(), n_, x_.as<uint8_t>(), y_.as<float>());
    });
  }

  absl::Status Columns() {
    const ConvGeometry geometry = ConvolutionOf(n_);
    if (geometry.in_size() * 9 > n_) return absl::OkStatus();
    const auto images = static_cast<double>(geometry.in_size() * kFloatBytes);
    RETURN_IF_ERROR(Measure("image to columns, 3 x 3", "x, columns", 10 * images, [&] {
      return cuda::LaunchImageToColumns(stream_.get(), geometry, x_.as<float>(), y_.as<float>());
    }));
    RETURN_IF_ERROR(
        Measure("image to bfloat16 columns, 3 x 3", "x, half columns", 5.5 * images, [&] {
          return cuda::LaunchImageToBfloat16Columns(stream_.get(), geometry, x_.as<float>(),
                                                    y_.as<uint16_t>());
        }));
    return Measure("columns to image, 3 x 3", "columns, x", 10 * images, [&] {
      return cuda::LaunchColumnsToImage(stream_.get(), geometry, x_.as<float>(), y_.as<float>());
    });
  }

  absl::Status Encoders() {
    const auto floats = static_cast<double>(n_ * kFloatBytes);
    using Launch = cudaError_t (*)(cudaStream_t, const cuda::WireTables&, const float*, uint8_t*);
    for (const auto& [name, format, launch] :
         {std::tuple<const char*, WireFormat, Launch>{"encode float16", WireFormat::kFloat16,
                                                      cuda::LaunchEncodeFloat16},
          {"encode bfloat16", WireFormat::kBfloat16, cuda::LaunchEncodeBfloat16}}) {
      DeviceTables tables;
      const WireLayout layout = LayoutOf(format, n_);
      RETURN_IF_ERROR(tables.Create(layout));
      const Launch start = launch;
      RETURN_IF_ERROR(Measure(name, "x, bytes", floats + static_cast<double>(layout.bytes), [&] {
        return start(stream_.get(), tables.get(), x_.as<float>(), y_.as<uint8_t>());
      }));
    }
    DeviceTables tables;
    const WireLayout layout = LayoutOf(WireFormat::kInt8, n_);
    RETURN_IF_ERROR(tables.Create(layout));
    return Measure("encode int8", "x, residual twice, bytes",
                   3 * floats + static_cast<double>(layout.bytes), [&] {
                     return cuda::LaunchEncodeInt8(stream_.get(), tables.get(), x_.as<float>(),
                                                   nullptr, residual_.as<float>(),
                                                   y_.as<uint8_t>());
                   });
  }

  absl::Status TopK() {
    DeviceTables tables;
    const WireLayout layout = LayoutOf(WireFormat::kTopK, n_);
    RETURN_IF_ERROR(tables.Create(layout));
    GpuMemory scratch;
    RETURN_IF_ERROR(scratch.Allocate(cuda::EncodeTopKScratch(tables.get())));
    return Measure("encode top-k, 1 %", "x, residual twice, bytes",
                   3.0 * static_cast<double>(n_ * kFloatBytes) + static_cast<double>(layout.bytes),
                   [&] {
                     return cuda::LaunchEncodeTopK(stream_.get(), tables.get(), x_.as<float>(),
                                                   nullptr, scratch.as<void>(),
                                                   residual_.as<float>(), y_.as<uint8_t>());
                   });
  }

  absl::Status Measure(const std::string& name, const std::string& counted, double bytes,
                       absl::FunctionRef<cudaError_t()> launch) {
    StreamTimer timer(stream_.get(), &failure_);
    RETURN_IF_ERROR(timer.Create());
    ASSIGN_OR_RETURN(const Spread milliseconds, MillisecondsPerCall(timing_, &timer, [&] {
                       failure_.Check(name.c_str(), launch());
                     }));
    results_.push_back({name, counted, bytes, PerSecond(bytes, milliseconds)});
    return absl::OkStatus();
  }

  const int64_t n_;
  const TimingOptions timing_;
  FirstFailure failure_;
  GpuStream stream_;
  GpuMemory x_;
  GpuMemory y_;
  GpuMemory residual_;
  std::vector<KernelResult> results_;
};

}  // namespace

absl::StatusOr<std::vector<KernelResult>> MeasureKernelLaunches(int ordinal, int64_t tensor_bytes,
                                                                const TimingOptions& timing) {
  RETURN_IF_ERROR(Checked("cudaSetDevice", cudaSetDevice(ordinal)));
  return LaunchBench(tensor_bytes, timing).Run();
}

}  // namespace keelson::bench
