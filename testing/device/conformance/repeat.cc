#include <cmath>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

using Floats = reference::Floats;

// One step of training, small but with operations of every kind.
struct Step {
  static constexpr int64_t kBatch = 6;
  static constexpr ConvGeometry kConv{kBatch, 6, 6, 2, 4, 4, 4, 3, 1, 0, 0};
  static constexpr PoolGeometry kPool{kBatch, 4, 4, 4, 2, 2, 2, 2, 0, 0};
  static constexpr BatchNormGeometry kNorm{kBatch * 4, 4};
  static constexpr int64_t kInputs = 16, kClasses = 5, kUnits = kBatch * kInputs;
  static constexpr int64_t kWeights = kInputs * kClasses;
  static constexpr size_t kDropped = 4;

  explicit Step(Device* device) : device(device) {
    done = *device->NewEvent();
    encoder = *device->NewGradientEncoder(layout);
    bytes = *device->AllocateHost(layout.bytes);
  }

  std::unique_ptr<DeviceMemory> New(int64_t n) { return *device->Allocate(n); }

  void SetInput(const Floats& values, const Floats& filters, const Floats& kernels) {
    device->CopyToDevice(values, x.get());
    device->CopyToDevice(filters, filter.get());
    device->CopyToDevice(kernels, kernel.get());
    Floats classes;
    for (int i = 0; i < kBatch; ++i) classes.push_back(static_cast<float>(i % kClasses));
    device->CopyToDevice(classes, labels.get());
    device->CopyToDevice({0.5f, -0.5f, 0.25f, 0, 1}, bias.get());
  }

  void Run() {
    Device& d = *device;
    d.Conv2D(kConv, *x, *filter, {.activation = ActivationKind::kRelu}, conv.get());
    d.MaxPool(kPool, *conv, pool.get());
    d.BatchNorm(kNorm, *pool, nullptr, nullptr, mean.get(), variance.get(), norm.get());
    d.Dropout(0.25f, 3, kUnits, *norm, dropped.get());
    d.MatMul({kBatch, kClasses, kInputs}, *dropped, *kernel, {.bias = bias.get()}, scores.get());
    d.SoftmaxCrossEntropy(kBatch, kClasses, 1.0f / kBatch, *scores, *labels, losses.get(),
                          dscores.get());
    d.Sum(kBatch, *losses, loss.get());
    d.DenseGradients(kBatch, kInputs, kClasses, *dropped, *dscores, dkernel.get(), dbias.get());
    DeviceMemory* const gradients[] = {dkernel.get(), dbias.get()};
    d.ClipByGlobalNorm(0.05f, gradients);
    d.Download(*dkernel, loss.get(), encoder.get(), bytes->bytes(), done.get());
    d.MatMul({kBatch, kInputs, kClasses, false, true}, *dscores, *kernel, {}, ddropped.get());
    d.Dropout(0.25f, 3, kUnits, *ddropped, dnorm.get());
    d.BatchNormBackward(kNorm, *pool, nullptr, *mean, *variance, *dnorm, nullptr, nullptr,
                        dpool.get());
    d.MaxPoolBackward(kPool, *conv, *pool, *dpool, dconv.get());
    d.ActivateBackward(ActivationKind::kRelu, kConv.out_size(), *conv, *dconv, dconv.get());
    d.Conv2DBackwardFilter(kConv, *x, *dconv, dfilter.get());
    d.Conv2DBackwardData(kConv, *filter, *dconv, dx.get());
    d.Fill(0, kUnits, dnorm.get());
    d.Axpy(2, 5, *dbias, bias_total.get());
    d.Scale(0.5f, 5, bias_total.get());
  }

  // Everything that a step leaves, at kDropped what Dropout left, and the downloaded bytes.
  std::vector<Floats> Results() {
    std::vector<Floats> results;
    for (DeviceMemory* memory : {conv.get(), norm.get(), mean.get(), variance.get(), dropped.get(),
                                 scores.get(), losses.get(), loss.get(), dkernel.get(), dbias.get(),
                                 dfilter.get(), dx.get(), bias_total.get()}) {
      results.emplace_back(memory->size());
      EXPECT_TRUE(device->CopyToHost(*memory, absl::MakeSpan(results.back())).ok());
    }
    EXPECT_TRUE(device->Await(*done).ok());
    results.emplace_back(bytes->bytes().begin(), bytes->bytes().end());
    return results;
  }

  Device* const device;
  const WireLayout layout{WireFormat::kInt8,
                          {{0, kInputs* kClasses, 0, 0}},
                          kInputs* kClasses,
                          kInputs* kClasses + sizeof(float)};
  std::unique_ptr<DeviceMemory> x = New(kConv.in_size()), filter = New(kConv.filter_size()),
                                kernel = New(kWeights), bias = New(kClasses), labels = New(kBatch),
                                conv = New(kConv.out_size()), pool = New(kPool.out_size()),
                                mean = New(4), variance = New(4), norm = New(kUnits),
                                dropped = New(kUnits), scores = New(kBatch * kClasses),
                                losses = New(kBatch), dscores = New(kBatch * kClasses),
                                loss = New(1), dkernel = New(kWeights), dbias = New(kClasses),
                                ddropped = New(kUnits), dnorm = New(kUnits), dpool = New(kUnits),
                                dconv = New(kConv.out_size()), dfilter = New(kConv.filter_size()),
                                dx = New(kConv.in_size()), bias_total = New(kClasses);
  std::unique_ptr<DeviceEvent> done;
  std::unique_ptr<GradientEncoder> encoder;
  std::unique_ptr<HostMemory> bytes;
};

TEST_P(DeviceConformanceTest, ARepetitionFollowsItsInputsAndTheSeed) {
  Step direct(device_.get()), repeated(device_.get());
  std::vector<Floats> before;
  for (uint64_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    const Floats x = Random(Step::kConv.in_size(), 50 + i);
    const Floats filter = Random(Step::kConv.filter_size(), 60 + i);
    const Floats kernel = Random(Step::kWeights, 70 + i);
    device_->SetSeed(1000 + i);
    direct.SetInput(x, filter, kernel);
    direct.Run();
    const std::vector<Floats> expected = direct.Results();
    EXPECT_NE(expected, before);
    before = expected;
    repeated.SetInput(x, filter, kernel);
    device_->Repeat(17, [&] { repeated.Run(); });
    EXPECT_EQ(repeated.Results(), expected);
  }
  // The result depends on the seed alone.
  device_->SetSeed(5);
  device_->Repeat(17, [&] { repeated.Run(); });
  EXPECT_NE(repeated.Results()[Step::kDropped], before[Step::kDropped]);
}

// Steps follow each other without a wait; each begins with a copy into what the last one reads.
TEST_P(DeviceConformanceTest, RepetitionsFollowEachOther) {
  const Memory x = Allocate(1000);
  const Output sum = InOut(Floats(1000, 0.0f));
  for (int i = 0; i < 20; ++i) {
    device_->CopyToDevice(Floats(1000, static_cast<float>(i)), x.get());
    device_->Repeat(1, [&] {
      device_->Scale(2, 1000, x.get());
      device_->Axpy(1, 1000, *x, sum.get());
    });
  }
  EXPECT_EQ(Read(sum), Floats(1000, 380.0f));
}

TEST_P(DeviceConformanceTest, KeysAreIndependent) {
  // More than a device may want to keep.
  constexpr int kKeys = 12;
  std::vector<Output> values;
  for (int key = 0; key < kKeys; ++key) values.push_back(InOut(Floats(33, 1.0f)));
  for (int round = 0; round < 4; ++round) {
    for (int key = 0; key < kKeys; ++key) {
      device_->Repeat(static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15ull,
                      [&] { device_->Scale(static_cast<float>(1 + key), 33, values[key].get()); });
    }
  }
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(Read(values[key]), Floats(33, std::pow(static_cast<float>(1 + key), 4.0f))) << key;
  }
}

TEST_P(DeviceConformanceTest, FreedMemoryMakesKeysForgotten) {
  for (int round = 0; round < 3; ++round) {
    const int64_t n = 100 + 50 * round;
    const Output x = InOut(Floats(n, 1.0f));
    for (int i = 0; i < 4; ++i) {
      device_->Repeat(3, [&] { device_->Scale(static_cast<float>(2 + round), n, x.get()); });
    }
    EXPECT_EQ(Read(x), Floats(n, std::pow(static_cast<float>(2 + round), 4)));
  }
}

TEST_P(DeviceConformanceTest, EventsOfARepetition) {
  constexpr int64_t kElements = 500;
  const WireLayout layout = WholeArrayLayout(WireFormat::kFloat32, kElements);
  const auto encoder = *device_->NewGradientEncoder(layout);
  const auto decoder = *device_->NewValueDecoder(WireFormat::kFloat32, kElements);
  const auto uploaded = *device_->NewEvent(), used = *device_->NewEvent(),
             downloaded = *device_->NewEvent();
  const auto from = *device_->AllocateHost(layout.bytes), to = *device_->AllocateHost(layout.bytes);
  const Memory values = Allocate(kElements), sum = Allocate(kElements);
  const absl::Span<float> host_values(reinterpret_cast<float*>(from->bytes().data()), kElements);
  const absl::Span<const float> host_sums(reinterpret_cast<const float*>(to->bytes().data()),
                                          kElements);
  float expected = 0;
  for (int i = 1; i <= 10; ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(device_->Await(*uploaded).ok());
    for (float& value : host_values) value = static_cast<float>(i);
    device_->Upload(from->bytes(), used.get(), decoder.get(), values.get(), uploaded.get());
    device_->Repeat(7, [&] {
      device_->WaitFor(*uploaded);
      device_->Axpy(1, kElements, *values, sum.get());
      device_->Fill(-1, kElements, values.get());
      device_->Record(used.get());
      device_->WaitFor(*downloaded);
      device_->Download(*sum, nullptr, encoder.get(), to->bytes(), downloaded.get());
    });
    expected += static_cast<float>(i);
    ASSERT_TRUE(device_->Await(*downloaded).ok());
    EXPECT_EQ(Floats(host_sums.begin(), host_sums.end()), Floats(kElements, expected));
    ASSERT_TRUE(device_->Await(*used).ok());
    EXPECT_GE(device_->MillisecondsBetween(*uploaded, *used), 0);
  }
}

TEST_P(DeviceConformanceTest, AFailureWithinARepetitionStays) {
  const Memory small = Allocate(3);
  for (int i = 0; i < 3; ++i) {
    device_->Repeat(2, [&] { device_->Fill(1, 3, small.get()); });
  }
  device_->Repeat(4, [&] { device_->Fill(0, 5, small.get()); });
  const absl::Status status = device_->Synchronize();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("Fill: expected memory of 5 floats, found 3"));
  device_->Repeat(4, [&] { device_->Fill(0, 5, small.get()); });
  EXPECT_EQ(device_->Synchronize(), status);
}

TEST_P(DeviceConformanceTest, ResultsAreTheSameBitByBit) {
  const ConvGeometry g{3, 12, 12, 32, 8, 8, 64, 5, 1, 0, 0};
  const BatchNormGeometry norm{192, 64};
  const Memory x = Exact(Random(g.in_size(), 19)), dy = Exact(Random(g.out_size(), 20));
  const Memory filter = Exact(Random(g.filter_size(), 21)), labels = Exact(Floats(192, 3));
  const auto run = [&] {
    const Output y = Garbage(g.out_size()), dx = Garbage(g.in_size());
    const Output dfilter = Garbage(g.filter_size()), dbias = Garbage(g.out_channels);
    const Output product = Garbage(64 * 64), dkernel = Garbage(30 * 64), sum = Garbage(1);
    const Output mean = Garbage(64), variance = Garbage(64), normalized = Garbage(192 * 64);
    const Output dgamma = Garbage(64), dbeta = Garbage(64), dnorm = Garbage(192 * 64);
    const Output losses = Garbage(192), dscores = Garbage(192 * 64);
    device_->Conv2D(g, *x, *filter, {}, y.get());
    device_->Conv2DBackwardData(g, *filter, *dy, dx.get());
    device_->Conv2DBackwardFilter(g, *x, *dy, dfilter.get());
    device_->BiasGradient(g.batch * 64, g.out_channels, *dy, dbias.get());
    device_->MatMul({64, 64, 190, true, false}, *x, *dy, {}, product.get());
    device_->DenseGradients(192, 30, 64, *x, *dy, dkernel.get(), nullptr);
    device_->Sum(g.out_size(), *dy, sum.get());
    device_->BatchNorm(norm, *dy, nullptr, nullptr, mean.get(), variance.get(), normalized.get());
    device_->BatchNormBackward(norm, *dy, nullptr, *mean, *variance, *normalized, dgamma.get(),
                               dbeta.get(), dnorm.get());
    device_->SoftmaxCrossEntropy(192, 64, 1, *dy, *labels, losses.get(), dscores.get());
    const Memory clipped = Exact(Read(*dy));
    DeviceMemory* const gradients[] = {clipped.get()};
    device_->ClipByGlobalNorm(0.5f, gradients);
    std::vector<Floats> results = {Read(*clipped)};
    for (const Output* output :
         {&y, &dx, &dfilter, &dbias, &product, &dkernel, &sum, &mean, &variance, &normalized,
          &dgamma, &dbeta, &dnorm, &losses, &dscores}) {
      results.push_back(Read(*output));
    }
    return results;
  };
  const std::vector<Floats> first = run();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(), first);
}

}  // namespace
}  // namespace keelson
