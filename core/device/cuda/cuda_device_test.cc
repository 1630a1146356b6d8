// On a real GPU.
#include "core/device/cuda/cuda_device.h"

#include <algorithm>
#include <string>
#include <vector>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

// The second GPU, where there is none the first once more, stands for a peer.
absl::StatusOr<std::unique_ptr<Device>> GpuOrPeer(int peer, Precision precision) {
  auto device = CreateCudaDevice(peer, precision);
  return device.ok() || peer == 0 ? std::move(device) : CreateCudaDevice(0, precision);
}

ConformanceDevice WithPrecision(Precision precision) {
  return {std::string(PrecisionName(precision)),
          [precision](int peer) { return GpuOrPeer(peer, precision); }, precision};
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformanceTest,
                         testing::Values(WithPrecision(Precision::kFloat32),
                                         WithPrecision(Precision::kTf32),
                                         WithPrecision(Precision::kBfloat16)),
                         ConformanceDevice::NameOf);

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
    auto device = CreateCudaDevice(0);
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
    std::vector<float> values(memory->size());
    const absl::Status status = device_->CopyToHost(*memory, absl::MakeSpan(values));
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], expected) << "element " << i;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaGpuTest, NamesTheGpu) {
  EXPECT_THAT(device_->name(),
              testing::MatchesRegex("cuda:0 .*compute capability .*, CUDA .*, float32\\)"));
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
  device_->MatMul({0, 0, 0}, *empty, *empty, {}, empty.get());
  device_->Conv2D({0, 3, 3, 1, 1, 1, 1, 3}, *empty, *Ones(9), {}, empty.get());
  device_->MaxPool({0, 2, 2, 1, 1, 1, 2, 2}, *empty, empty.get());
  device_->SoftmaxCrossEntropy(0, 3, 1, *empty, *empty, empty.get(), nullptr);
  ExpectAll(1, one);
}

TEST_F(CudaGpuTest, SumsOfNothingAreZero) {
  const Memory empty = *device_->Allocate(0), product = Ones(6), sums = Ones(3), dfilter = Ones(9);
  const Memory dkernel = Ones(6), dbias = Ones(3), sum = Ones(1);
  device_->MatMul({2, 3, 0}, *empty, *empty, {}, product.get());
  device_->BiasGradient(0, 3, *empty, sums.get());
  device_->DenseGradients(0, 2, 3, *empty, *empty, dkernel.get(), dbias.get());
  device_->Sum(0, *empty, sum.get());
  device_->Conv2DBackwardFilter({0, 3, 3, 1, 1, 1, 1, 3}, *empty, *empty, dfilter.get());
  for (const Memory* memory : {&product, &sums, &dkernel, &dbias, &sum, &dfilter}) {
    ExpectAll(0, *memory);
  }
}

// More columns than one piece of scratch memory holds.
TEST_F(CudaGpuTest, ConvolvesALargeBatchInPieces) {
  const ConvGeometry g{4000, 28, 28, 1, 24, 24, 2, 5, 1, 0, 0};
  const Memory x = Ones(g.in_size()), filter = Ones(g.filter_size());
  const Memory y = *device_->Allocate(g.out_size()), dfilter = *device_->Allocate(g.filter_size());
  device_->Conv2D(g, *x, *filter, {}, y.get());
  ExpectAll(25, y);
  device_->Conv2DBackwardFilter(g, *x, *Ones(g.out_size()), dfilter.get());
  ExpectAll(4000 * 24 * 24, dfilter);
  // The corner pixel of each image is in one window, a pixel of its middle in 25.
  const Memory dx = *device_->Allocate(g.in_size());
  device_->Conv2DBackwardData(g, *filter, *y, dx.get());
  std::vector<float> values(g.in_size());
  ASSERT_TRUE(device_->CopyToHost(*dx, absl::MakeSpan(values)).ok());
  for (size_t image = 0; image < 4000; ++image) {
    ASSERT_EQ(values[image * 784], 2 * 25) << image;
    ASSERT_EQ(values[image * 784 + 14 * 28 + 14], 25 * 2 * 25) << image;
  }
}

// What the way of gradients to the host rests on: an event of a graph is under way from the call
// that launches it, not from when the GPU reaches it.
TEST_F(CudaGpuTest, EventsOfAGraphAreUnderWayFromTheLaunch) {
  constexpr int64_t kLarge = int64_t{1} << 26;
  const Memory x = *device_->Allocate(kLarge);
  const auto event = *device_->NewEvent();
  for (int i = 0; i < 10; ++i) {
    device_->Repeat(1, [&] {
      for (int j = 0; j < 50; ++j) device_->Fill(static_cast<float>(j), kLarge, x.get());
      device_->Record(event.get());
    });
    EXPECT_FALSE(device_->Passed(*event)) << "launch " << i;
    ASSERT_TRUE(device_->Await(*event).ok());
    EXPECT_TRUE(device_->Passed(*event));
  }
}

// Gradients and values through page-locked memory while the GPU computes, many steps of one graph.
TEST_F(CudaGpuTest, CopiesBesideAGraphStayInOrder) {
  constexpr int64_t kSize = int64_t{1} << 20;
  const WireLayout layout = WholeArrayLayout(WireFormat::kFloat32, kSize);
  const auto encoder = *device_->NewGradientEncoder(layout);
  const auto decoder = *device_->NewValueDecoder(WireFormat::kFloat32, kSize);
  const auto uploaded = *device_->NewEvent(), used = *device_->NewEvent();
  const auto downloaded = *device_->NewEvent();
  const auto from = *device_->AllocateHost(layout.bytes), to = *device_->AllocateHost(layout.bytes);
  const Memory value = *device_->Allocate(kSize), gradient = *device_->Allocate(kSize);
  auto* const values = reinterpret_cast<float*>(from->bytes().data());
  const auto* const gradients = reinterpret_cast<const float*>(to->bytes().data());
  for (int step = 0; step < 50; ++step) {
    ASSERT_TRUE(device_->Await(*uploaded).ok());
    std::fill(values, values + kSize, static_cast<float>(step));
    device_->Upload(from->bytes(), used.get(), decoder.get(), value.get(), uploaded.get());
    device_->Repeat(1, [&] {
      device_->WaitFor(*uploaded);
      device_->Fill(1, kSize, gradient.get());
      for (int i = 0; i < 20; ++i) device_->Axpy(1, kSize, *value, gradient.get());
      device_->Record(used.get());
      device_->Download(*gradient, nullptr, encoder.get(), to->bytes(), downloaded.get());
      device_->Fill(-1, kSize, value.get());
    });
    ASSERT_TRUE(device_->Await(*downloaded).ok());
    for (int64_t i = 0; i < kSize; i += 4099) {
      ASSERT_EQ(gradients[i], 1 + 20.0f * static_cast<float>(step)) << "element " << i;
    }
    // The next upload must find the value used to its end.
    device_->Record(used.get());
  }
}

TEST(CudaGroupGpuTest, SumsToTheFirstGpu) {
  constexpr int64_t kSize = 1'000'003;
  const auto group = CreateCudaGroup({0, 1});
  if (absl::IsFailedPrecondition(group.status())) {
    GTEST_SKIP() << "skipped: " << group.status().message();
  }
  ASSERT_TRUE(group.ok()) << group.status();
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  std::vector<DeviceMemory*> pointers;
  for (int i = 0; i < 2; ++i) {
    memories.push_back(*(*group)->device(i)->Allocate(kSize));
    pointers.push_back(memories.back().get());
  }
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 2; ++i) {
      (*group)->device(i)->Fill(static_cast<float>(round + 100 * i), kSize, pointers[i]);
    }
    (*group)->ReduceToFirst(kSize, pointers);
    std::vector<float> sums(kSize);
    ASSERT_TRUE((*group)->first()->CopyToHost(*pointers[0], absl::MakeSpan(sums)).ok());
    ASSERT_EQ(sums, std::vector<float>(kSize, static_cast<float>(100 + 2 * round)));
  }
}

}  // namespace
}  // namespace keelson
