// What a model asks of a GPU, on the emulated one.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/device/factory/device_factory.h"
#include "core/model/model.h"
#include "core/model/model_testing.h"
#include "core/wire/wire_format.h"
#include "testing/device/cuda_emulation/emulation.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kNetwork[] = R"pb(
  input_shape: [ 6, 6, 1 ]
  layers { conv2d { filters: 3 kernel_size: 3 } }
  layers { relu {} }
  layers { flatten {} }
  layers { dense { units: 9 } }
  layers { tanh {} }
  layers { dropout { rate: 0.25 } }
  layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

// A model by wire memory on GPU 0.
class ModelGpuTest : public testing::Test {
 protected:
  void SetUp() override { Reset({}); }
  void TearDown() override {
    model_.reset();
    device_.reset();
    EXPECT_EQ(cuda_emulation::Leaks(), "");
    EXPECT_THAT(cuda_emulation::Complaints(), testing::IsEmpty());
    cuda_emulation::Reset({});
  }

  // On new GPUs.
  void Reset(const cuda_emulation::Options& options) {
    model_.reset();
    device_.reset();
    cuda_emulation::Reset(options);
    auto device = CreateDevice("cuda");
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    auto model = Model::Create(ParseModel(kNetwork), device_.get());
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    std::vector<VariableWire> wire;
    for (const VariableSpec& variable : model_->variables()) {
      const int64_t elements = variable.shape.num_elements();
      wire.push_back({WholeArrayLayout(WireFormat::kInt8, elements), WireFormat::kBfloat16});
    }
    auto memory = model_->PrepareWire(wire, 1);
    ASSERT_TRUE(memory.ok()) << memory.status();
    for (const absl::Span<uint8_t> array : memory->values[0]) {
      std::fill(array.begin(), array.end(), uint8_t{0x3c});
    }
  }

  absl::Status Load() {
    for (size_t v = 0; v < model_->variables().size(); ++v) {
      const absl::Status status = model_->LoadWire(static_cast<int>(v), 0);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::Status Compute(int64_t rows = 8) {
    return model_->ComputeGradients(RandomBatch(model_->spec(), rows, 1), {}, {}, nullptr).status();
  }
  absl::Status Step() {
    const absl::Status status = Load();
    return status.ok() ? Compute() : status;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
};

TEST_F(ModelGpuTest, AWarmStepIsOneGraphAndWaitsForEventsAlone) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Step().ok());
  const cuda_emulation::Statistics before = cuda_emulation::CurrentStatistics();
  ASSERT_TRUE(Step().ok());
  const cuda_emulation::Statistics after = cuda_emulation::CurrentStatistics();
  EXPECT_EQ(after.graph_launches - before.graph_launches, 1);
  EXPECT_EQ(after.products, before.products);
  EXPECT_EQ(after.stream_synchronizations, before.stream_synchronizations);
  EXPECT_EQ(after.synchronous_copies, before.synchronous_copies);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.frees, before.frees);
  // The loss and each variable's gradient.
  EXPECT_LE(after.event_synchronizations - before.event_synchronizations, 1 + 6);
  // Features, labels, the seed and each variable's values.
  EXPECT_EQ(after.copies_to_device - before.copies_to_device, 3 + 6);
  // Their decoders.
  EXPECT_EQ(after.kernel_launches - before.kernel_launches, 6);
}

TEST_F(ModelGpuTest, AnErrorNamesTheLayerTheOperationAndTheCall) {
  constexpr int kExecutionFailed = 13;  // CUBLAS_STATUS_EXECUTION_FAILED
  cuda_emulation::FailCall("cublasLtMatmul", 1, kExecutionFailed);
  const absl::Status status = Compute();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("layer conv2d_1: device cuda:0: Conv2D: cublasLtMatmul: "));
  EXPECT_EQ(Compute(), status) << "from then on";
}

TEST_F(ModelGpuTest, NoCallThatFailsInAStepIsOverlooked) {
  constexpr int kLaunchFailure = 719;  // cudaErrorLaunchFailure
  for (const int warm_steps : {1, 3}) {
    for (int64_t call = 1;; ++call) {
      // What a call that failed should have freed is left.
      Reset({});
      for (int i = 0; i < warm_steps; ++i) ASSERT_TRUE(Step().ok());
      cuda_emulation::FailCall("*", call, kLaunchFailure);
      const absl::Status status = Step();
      if (cuda_emulation::PendingFaults() > 0) {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_GT(call, 10) << "calls of a step";
        break;
      }
      EXPECT_FALSE(status.ok()) << "call " << call << " after " << warm_steps << " steps";
      EXPECT_THAT(std::string(status.message()), HasSubstr("device cuda:0: "));
    }
  }
}

TEST_F(ModelGpuTest, WorkThatFailsLaterIsReported) {
  constexpr int kIllegalAddress = 700;  // cudaErrorIllegalAddress
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Step().ok());
  cuda_emulation::FailExecution(12, kIllegalAddress);
  const absl::Status status = Step();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("device cuda:0: "));
  EXPECT_EQ(Compute(), status) << "from then on";
}

TEST_F(ModelGpuTest, OutOfMemoryLeavesRoomForASmallerBatch) {
  cuda_emulation::Options options;
  options.memory_bytes = size_t{48} << 20;
  Reset(options);
  ASSERT_TRUE(Step().ok());
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = Compute(100000);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("a batch of 100000: device cuda:0: "));
    const absl::Status smaller = Step();
    EXPECT_TRUE(smaller.ok()) << smaller;
  }
}

}  // namespace
}  // namespace keelson
