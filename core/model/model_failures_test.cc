// Errors of devices as a model reports them, and what it can do after them; the trace of steps.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_devices_testing.h"
#include "testing/device/device_testing.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kNamedNetwork[] = R"pb(
  input_shape: [ 6, 6, 1 ]
  layers {
    name: "edges"
    conv2d { filters: 3 kernel_size: 3 }
  }
  layers { relu {} }
  layers { flatten {} }
  layers { dense { units: 4 } }
  layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

// Has an error from a certain call of an operation on.
class FailingDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  // The call number `call` of `operation`, from 1.
  void FailAt(std::string operation, int call) {
    operation_ = std::move(operation);
    calls_left_ = call;
  }

  absl::Status status() const override { return error_; }
  absl::Status Synchronize() override { return error_; }
  absl::Status Await(const DeviceEvent& /*event*/) override { return error_; }
  absl::Status CopyToHost(const DeviceMemory& from, absl::Span<float> to) override {
    return error_.ok() ? ForwardingDevice::CopyToHost(from, to) : error_;
  }
  void CopyToDevice(absl::Span<const float> from, DeviceMemory* to) override {
    if (Continues("CopyToDevice")) ForwardingDevice::CopyToDevice(from, to);
  }
  void MatMul(const MatMulArgs& args, const DeviceMemory& a, const DeviceMemory& b,
              const Epilogue& epilogue, DeviceMemory* c) override {
    if (Continues("MatMul")) ForwardingDevice::MatMul(args, a, b, epilogue, c);
  }
  void Conv2DBackwardFilter(const ConvGeometry& geometry, const DeviceMemory& x,
                            const DeviceMemory& dy, DeviceMemory* dfilter) override {
    if (!Continues("Conv2DBackwardFilter")) return;
    ForwardingDevice::Conv2DBackwardFilter(geometry, x, dy, dfilter);
  }
  void ClipByGlobalNorm(float max_norm, absl::Span<DeviceMemory* const> gradients) override {
    if (Continues("ClipByGlobalNorm")) ForwardingDevice::ClipByGlobalNorm(max_norm, gradients);
  }
  void Sum(int64_t n, const DeviceMemory& x, DeviceMemory* sum) override {
    if (Continues("Sum")) ForwardingDevice::Sum(n, x, sum);
  }
  void Download(const DeviceMemory& gradient, const DeviceMemory* gate, GradientEncoder* encoder,
                absl::Span<uint8_t> to, DeviceEvent* done) override {
    if (Continues("Download")) ForwardingDevice::Download(gradient, gate, encoder, to, done);
  }
  void Upload(absl::Span<const uint8_t> from, const DeviceEvent* after, ValueDecoder* decoder,
              DeviceMemory* to, DeviceEvent* done) override {
    if (Continues("Upload")) ForwardingDevice::Upload(from, after, decoder, to, done);
  }

 private:
  bool Continues(const std::string& operation) {
    if (error_.ok() && operation == operation_ && --calls_left_ == 0) {
      error_ = absl::InternalError("device test: " + operation + ": broken");
    }
    return error_.ok();
  }

  std::string operation_;
  int calls_left_ = 0;
  absl::Status error_;
};

// A model by wire memory on such a device.
struct FailingModel {
  FailingModel() {
    auto failing = std::make_unique<FailingDevice>(MakeTestDevice("cpu"));
    device = failing.get();
    test = std::make_unique<TestModel>(kNamedNetwork, 1, std::move(failing));
    std::vector<VariableWire> wire;
    for (const VariableSpec& variable : test->model->variables()) {
      wire.push_back({WholeArrayLayout(WireFormat::kFloat32, variable.shape.num_elements())});
    }
    EXPECT_TRUE(test->model->PrepareWire(wire, 1).ok());
  }

  absl::Status Compute(const StepOptions& options = {}) {
    return test->model
        ->ComputeGradients(RandomBatch(test->model->spec(), 4, 1), options, {}, nullptr)
        .status();
  }

  FailingDevice* device;
  std::unique_ptr<TestModel> test;
};

absl::Status Internal(const std::string& text) { return absl::InternalError(text); }

TEST(ModelFailuresTest, AnErrorNamesTheLayer) {
  struct Case {
    const char* operation;
    int call;
    const char* text;
  };
  for (const Case& c : {
           Case{"MatMul", 2, "layer dense_2: device test: MatMul: broken"},
           Case{"MatMul", 3, "layer dense_2: device test: MatMul: broken"},
           Case{"MatMul", 4, "layer dense_1: device test: MatMul: broken"},
           Case{"Conv2DBackwardFilter", 1,
                "layer edges: device test: Conv2DBackwardFilter: broken"},
           Case{"Sum", 1, "loss SOFTMAX_CROSS_ENTROPY: device test: Sum: broken"},
           Case{"CopyToDevice", 1, "model batch: device test: CopyToDevice: broken"},
           // The first brings the loss to the host.
           Case{"Download", 2, "variable dense_2/bias: device test: Download: broken"},
           Case{"ClipByGlobalNorm", 1,
                "model clip_global_norm: device test: ClipByGlobalNorm: broken"},
       }) {
    FailingModel failing;
    ASSERT_TRUE(failing.Compute({.clip_global_norm = 1}).ok());
    failing.device->FailAt(c.operation, c.call);
    EXPECT_EQ(failing.Compute({.clip_global_norm = 1}), Internal(c.text));
    EXPECT_EQ(failing.Compute(), Internal(c.text)) << "from then on";
    const std::vector<float> bias(3);
    EXPECT_EQ(failing.test->model->SetVariable(5, bias), Internal(c.text));
    const Batch batch = RandomBatch(failing.test->model->spec(), 4, 1);
    EXPECT_EQ(failing.test->model->Evaluate(batch, {}).status(), Internal(c.text));
  }
}

TEST(ModelFailuresTest, AnErrorNamesTheVariable) {
  FailingModel uploads;
  uploads.device->FailAt("Upload", 2);
  EXPECT_TRUE(uploads.test->model->LoadWire(0, 0).ok());
  EXPECT_EQ(uploads.test->model->LoadWire(2, 0),
            Internal("variable dense_1/kernel: device test: Upload: broken"));
  FailingModel copies;
  copies.device->FailAt("CopyToDevice", 1);
  const std::vector<float> bias(3);
  EXPECT_EQ(copies.test->model->SetVariable(5, bias),
            Internal("variable dense_2/bias: device test: CopyToDevice: broken"));
}

TEST(ModelFailuresTest, KeptGradientsThatCannotLeave) {
  FailingModel failing;
  ASSERT_TRUE(failing.Compute({.deliver = false}).ok());
  failing.device->FailAt("Download", 1);
  EXPECT_EQ(failing.test->model->DeliverGradients({}, nullptr),
            Internal("variable dense_2/bias: device test: Download: broken"));
}

TEST(ModelFailuresTest, OutOfMemoryLeavesRoomForASmallerBatch) {
  auto owned = MakeTestDevice("delayed");
  auto* const device = static_cast<DelayedDevice*>(owned.get());
  TestModel test(kNamedNetwork, 1, std::move(owned));
  TestModel expected(kNamedNetwork);
  const ModelSpec& spec = test.model->spec();
  const Batch small = RandomBatch(spec, 8, 1);
  const Batch large = RandomBatch(spec, 100, 1);
  // Holds the variables and 8 examples; one has about 500 floats.
  device->set_memory_limit(8000);
  const double loss = expected.Step(small);
  EXPECT_EQ(test.Step(small), loss);
  const auto arrays = SpansOf(&test.gradients);
  for (int i = 0; i < 2; ++i) {
    const auto too_large = test.model->ComputeGradients(large, {}, {.arrays = arrays}, nullptr);
    EXPECT_EQ(too_large.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(too_large.status().message()),
                StartsWith("a batch of 100: device delayed: out of memory"));
    const auto evaluated = test.model->Evaluate(large, {});
    EXPECT_EQ(evaluated.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(test.Step(small), loss);
  }
}

TEST(ModelFailuresTest, OutOfMemoryForTheVariables) {
  DelayedDevice device(MakeTestDevice("cpu"), 1);
  device.set_memory_limit(30);
  const auto model = Model::Create(ParseModel(kNamedNetwork), &device);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("out of memory"));
}

TEST(ModelFailuresTest, OnlyPairsHaveQueriesAndItems) {
  TestModel test(kNamedNetwork);
  const Batch batch = RandomBatch(test.model->spec(), 2, 1);
  const absl::Status expected = absl::FailedPreconditionError(
      "queries and items: expected a model with the loss IN_BATCH_SOFTMAX, found "
      "SOFTMAX_CROSS_ENTROPY");
  PairVectors pairs;
  EXPECT_EQ(test.model->PredictPairs(batch, &pairs), expected);
  EXPECT_EQ(test.model->Evaluate(batch, {}, nullptr, &pairs).status(), expected);
}

// By device.
class ModelTraceTest : public ModelOnDevicesTest {};

TEST_P(ModelTraceTest, TellsTheTimesOfAStepInTheirOrder) {
  TestModel test(kNamedNetwork, 1, NewDevice());
  Model& model = *test.model;
  std::vector<VariableWire> wire;
  for (const VariableSpec& variable : model.variables()) {
    wire.push_back({WholeArrayLayout(WireFormat::kFloat32, variable.shape.num_elements())});
  }
  const auto memory = model.PrepareWire(wire, 1);
  ASSERT_TRUE(memory.ok()) << memory.status();
  for (const absl::Span<uint8_t> array : memory->values[0]) {
    std::fill(array.begin(), array.end(), uint8_t{0});
  }
  const absl::Status none =
      absl::FailedPreconditionError("trace: expected a step with gradients, found none");
  EXPECT_EQ(model.ReadTrace().status(), none);
  const Batch batch = RandomBatch(model.spec(), 6, 1);
  ASSERT_TRUE(model.ComputeGradients(batch, {}, {}, nullptr).ok());
  EXPECT_EQ(model.ReadTrace().status(), none) << "not traced";
  ASSERT_TRUE(model.StartTrace(Clock::Real()).ok());
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(model.LoadWire(3, 0).ok());
    ASSERT_TRUE(model.LoadWire(1, 0).ok());
    ASSERT_TRUE(model.ComputeGradients(batch, {}, {}, nullptr).ok());
    const auto times = model.ReadTrace();
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(times->batch.begin, 0);
    EXPECT_LE(times->batch.begin, times->batch.end);
    EXPECT_EQ(times->batch.end, times->forward.begin);
    EXPECT_LE(times->forward.begin, times->forward.end);
    EXPECT_EQ(times->forward.end, times->backward.begin);
    EXPECT_LE(times->backward.begin, times->backward.end);
    double previous = times->forward.end;
    for (const size_t v : {5, 4, 3, 2, 1, 0}) {
      EXPECT_LE(previous, times->downloads[v].begin);
      EXPECT_LE(times->downloads[v].begin, times->downloads[v].end);
      previous = times->downloads[v].end;
    }
    EXPECT_LE(times->uploads[3].end, times->uploads[1].begin);
    EXPECT_LE(times->uploads[1].end, times->forward.end);
    EXPECT_EQ(times->uploads[0].end, 0);
  }
  ASSERT_TRUE(model.ComputeGradients(batch, {.deliver = false}, {}, nullptr).ok());
  const auto kept = model.ReadTrace();
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->downloads[5].end, 0);
  EXPECT_EQ(kept->uploads[1].end, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelTraceTest, AllTestDevices(), TestDeviceName);

}  // namespace
}  // namespace keelson
