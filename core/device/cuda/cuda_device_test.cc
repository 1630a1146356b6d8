#include "core/device/cuda/cuda_device.h"

#include "core/device/device_conformance.h"

namespace keelson {
namespace {

absl::StatusOr<std::unique_ptr<Device>> FirstGpu() { return CreateCudaDevice(0); }

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformanceTest, testing::Values(&FirstGpu));

TEST(CudaDeviceTest, AnImpossibleGpuIsNoCudaDevice) {
  for (int ordinal : {-1, 1000}) {
    const absl::Status status = CreateCudaDevice(ordinal).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::StartsWith("device cuda: no CUDA device: "));
  }
}

class CudaGpuTest : public testing::Test {
 protected:
  using Memory = std::unique_ptr<DeviceMemory>;

  void SetUp() override {
    auto device = FirstGpu();
    if (absl::IsFailedPrecondition(device.status())) {
      GTEST_SKIP() << "skipped: " << device.status().message();
    }
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  Memory Ones(int64_t n) {
    Memory memory = *device_->Allocate(n);
    device_->Fill(1, n, memory.get());
    return memory;
  }
  void ExpectAll(float expected, const Memory& memory) {
    std::vector<float> values(static_cast<size_t>(memory->size()));
    const absl::Status status = device_->CopyToHost(*memory, absl::MakeSpan(values));
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], expected) << "element " << i;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaGpuTest, NamesTheGpu) {
  EXPECT_THAT(device_->name(), testing::MatchesRegex("cuda:0 .*compute capability .*, CUDA .*"));
}

TEST_F(CudaGpuTest, OutOfMemorySaysHowMuchAndDoesNotLast) {
  const absl::Status status = device_->Allocate(int64_t{1} << 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("Allocate: cudaMalloc of 4503599627370496 bytes (4294967296 MiB): "
                                 "out of memory: "));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(" free of "));
  ExpectAll(1, Ones(1000));
  EXPECT_TRUE(device_->Synchronize().ok());
}

TEST_F(CudaGpuTest, EmptyExtentsDoNothing) {
  const Memory empty = *device_->Allocate(0), one = Ones(1);
  device_->CopyToDevice({}, empty.get());
  device_->Fill(1, 0, empty.get());
  device_->Axpy(1, 0, *empty, empty.get());
  device_->MatMul({0, 0, 0}, *empty, *empty, empty.get());
  device_->Conv2D({0, 3, 3, 1, 1, 1, 1, 3}, *empty, *Ones(9), empty.get());
  device_->MaxPool({0, 2, 2, 1, 1, 1, 2, 2}, *empty, empty.get());
  device_->SoftmaxCrossEntropy(0, 3, *empty, *empty, empty.get(), nullptr);
  ExpectAll(1, one);
}

TEST_F(CudaGpuTest, SumsOfNothingAreZero) {
  const Memory empty = *device_->Allocate(0), product = Ones(6), sums = Ones(3), dfilter = Ones(9);
  device_->MatMul({2, 3, 0}, *empty, *empty, product.get());
  device_->BiasGradient(0, 3, *empty, sums.get());
  device_->Conv2DBackwardFilter({0, 3, 3, 1, 1, 1, 1, 3}, *empty, *empty, dfilter.get());
  ExpectAll(0, product);
  ExpectAll(0, sums);
  ExpectAll(0, dfilter);
}

// More columns than one piece of scratch memory holds.
TEST_F(CudaGpuTest, ConvolvesALargeBatchInPieces) {
  const ConvGeometry g{4000, 28, 28, 1, 24, 24, 2, 5, 1, 0, 0};
  const Memory x = Ones(g.in_size()), filter = Ones(g.filter_size());
  const Memory y = *device_->Allocate(g.out_size()), dfilter = *device_->Allocate(g.filter_size());
  device_->Conv2D(g, *x, *filter, y.get());
  ExpectAll(25, y);
  device_->Conv2DBackwardFilter(g, *x, *Ones(g.out_size()), dfilter.get());
  ExpectAll(4000 * 24 * 24, dfilter);
  // The corner pixel of each image is in one window, a pixel of its middle in 25.
  const Memory dx = *device_->Allocate(g.in_size());
  device_->Conv2DBackwardData(g, *filter, *y, dx.get());
  std::vector<float> values(static_cast<size_t>(g.in_size()));
  ASSERT_TRUE(device_->CopyToHost(*dx, absl::MakeSpan(values)).ok());
  for (size_t image = 0; image < 4000; ++image) {
    ASSERT_EQ(values[image * 784], 2 * 25) << image;
    ASSERT_EQ(values[image * 784 + 14 * 28 + 14], 25 * 2 * 25) << image;
  }
}

}  // namespace
}  // namespace keelson
