#include <cmath>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

TEST_P(DeviceConformanceTest, Activates) {
  for (ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid}) {
    for (int64_t n : {1, 3, 4, 5, 33, 127, 1025, 20001}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << n);
      Floats x = Random(n, 13);
      for (float& value : x) value *= 4;
      const Floats dy = Random(n, 14);
      Doubles expected, expected_dx;
      for (size_t i = 0; i < x.size(); ++i) {
        expected.push_back(reference::Activate(kind, x[i]));
        expected_dx.push_back(dy[i] * reference::ActivateDerivative(kind, x[i]));
      }
      const Output y = Garbage(n), dx = Garbage(n);
      device_->Activate(kind, n, *Input(x), y.get());
      device_->ActivateBackward(kind, n, *y, *Input(dy), dx.get());
      ExpectNear(y, expected);
      ExpectNear(dx, expected_dx);
      const Output y_in_place = InOut(x), dx_in_place = InOut(dy);
      device_->Activate(kind, n, *y_in_place, y_in_place.get());
      device_->ActivateBackward(kind, n, *y, *dx_in_place, dx_in_place.get());
      EXPECT_EQ(Read(y_in_place), Read(y));
      EXPECT_EQ(Read(dx_in_place), Read(dx));
    }
  }
}

TEST_P(DeviceConformanceTest, WorksOnLargeArrays) {
  constexpr int64_t kElements = 1'000'003;
  const Memory x = Exact(Floats(kElements, 0.5f));
  const Output y = InOut(Floats(kElements, -0.25f)), sum = Garbage(1);
  device_->Axpy(3, kElements, *x, y.get());
  device_->Activate(ActivationKind::kRelu, kElements, *y, y.get());
  device_->Scale(2, kElements, y.get());
  device_->Sum(kElements, *y, sum.get());
  EXPECT_TRUE(Read(y) == Floats(kElements, 2.5f));  // EXPECT_EQ would print them
  ExpectNear(sum, {2.5 * kElements}, 1e-6);
  device_->SetSeed(77);
  device_->Dropout(0.5f, 4, kElements, *x, y.get());
  ExpectNear(y, reference::Dropout(0.5f, 77, 4, Floats(kElements, 0.5f)), 0);
}

TEST_P(DeviceConformanceTest, ActivatesExtremes) {
  const Floats x = {-1000, -100, 0, 100, 1000};
  const Output y = Garbage(5), dx = Garbage(5);
  const Memory ones = Input(Floats(5, 1.0f));
  device_->Activate(ActivationKind::kSigmoid, 5, *Input(x), y.get());
  ExpectNear(y, {0, 0, 0.5, 1, 1}, 1e-7);
  device_->Activate(ActivationKind::kTanh, 5, *Input(x), y.get());
  ExpectNear(y, {-1, -1, 0, 1, 1}, 1e-7);
  device_->Activate(ActivationKind::kRelu, 5, *Input(x), y.get());
  device_->ActivateBackward(ActivationKind::kRelu, 5, *y, *ones, dx.get());
  ExpectNear(dx, {0, 0, 0, 1, 1}, 0);
}

TEST_P(DeviceConformanceTest, ActivationsKeepNotANumberVisible) {
  for (ActivationKind kind :
       {ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid}) {
    const Output y = Garbage(5), dx = Garbage(5);
    device_->Activate(kind, 5, *Input({0, kNan, 0, 0, kNan}), y.get());
    device_->ActivateBackward(kind, 5, *Input(Floats(5, 0.5f)), *Input({0, kNan, 0, 0, kNan}),
                              dx.get());
    for (const Floats& values : {Read(y), Read(dx)}) {
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(values[i]), i == 1 || i == 4) << i;
    }
  }
}

TEST_P(DeviceConformanceTest, DropsOutByTheCounterBasedGenerator) {
  const uint64_t seed = 0x123456789abcdefull;
  device_->SetSeed(seed);
  for (int64_t n : {1, 3, 4, 35, 129, 1026, 20003}) {
    for (float rate : {0.0f, 0.3f, 0.75f}) {
      for (uint64_t stream : {uint64_t{0}, uint64_t{7}, uint64_t{0xfedcba9876543210}}) {
        SCOPED_TRACE(testing::Message() << n << " " << rate << " " << stream);
        const Floats x = Random(n, 15);
        const Output y = Garbage(n), in_place = InOut(x);
        device_->Dropout(rate, stream, n, *Input(x), y.get());
        device_->Dropout(rate, stream, n, *in_place, in_place.get());
        ExpectNear(y, reference::Dropout(rate, seed, stream, x), 1e-6);
        EXPECT_EQ(Read(in_place), Read(y));
      }
    }
  }
}

TEST_P(DeviceConformanceTest, ASeedIsThatOfTheCallsAfterIt) {
  const Floats x(1000, 1.0f);
  const Memory in = Input(x);
  std::vector<Output> outputs;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    device_->SetSeed(seed << 32 | (100 - seed));
    outputs.push_back(Garbage(1000));
    device_->Dropout(0.5f, 3, 1000, *in, outputs.back().get());
  }
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    ExpectNear(outputs[seed], reference::Dropout(0.5f, seed << 32 | (100 - seed), 3, x), 1e-6);
  }
}

TEST_P(DeviceConformanceTest, ComputesSoftmaxCrossEntropy) {
  for (int64_t rows : {1, 13, 130}) {
    for (int64_t classes : {1, 2, 10, 31, 32, 33, 131}) {
      SCOPED_TRACE(testing::Message() << rows << "x" << classes);
      Floats scores = Random(rows * classes, 16), labels;
      for (float& score : scores) score *= 10;
      for (int64_t row = 0; row < rows; ++row) {
        labels.push_back(static_cast<float>((row * 7 + 1) % classes));
      }
      const Output losses = Garbage(rows), dscores = Garbage(rows * classes);
      device_->SoftmaxCrossEntropy(rows, classes, 0.75f, *Input(scores), *Input(labels),
                                   losses.get(), dscores.get());
      const auto expected = reference::SoftmaxCrossEntropy(classes, 0.75, scores, labels);
      ExpectNear(losses, expected.losses);
      ExpectNear(dscores, expected.dscores, 1e-6);
    }
  }
}

TEST_P(DeviceConformanceTest, ComputesSoftmaxCrossEntropyOfManyClasses) {
  const int64_t rows = 3, classes = 5003;
  Floats scores = Random(rows * classes, 17);
  scores[classes - 1] = 9;
  const Floats labels = {0, 5002, 1024};
  const Output losses = Garbage(rows), dscores = Garbage(rows * classes);
  device_->SoftmaxCrossEntropy(rows, classes, 1, *Input(scores), *Input(labels), losses.get(),
                               dscores.get());
  const auto expected = reference::SoftmaxCrossEntropy(classes, 1, scores, labels);
  ExpectNear(losses, expected.losses, 4e-6);
  ExpectNear(dscores, expected.dscores, 1e-6);
}

TEST_P(DeviceConformanceTest, SoftmaxCrossEntropyIsStable) {
  const Output losses = Garbage(2), dscores = Garbage(4);
  device_->SoftmaxCrossEntropy(2, 2, 0.5f, *Input({5000, -5000, 5000, -5000}), *Input({0, 1}),
                               losses.get(), dscores.get());
  EXPECT_EQ(Read(losses), Floats({0, 10000}));
  ExpectNear(dscores, {0, 0, 0.5, -0.5}, 1e-7);
}

TEST_P(DeviceConformanceTest, ComputesSigmoidCrossEntropy) {
  const Floats scores = {-200, -3, -0.5, 0, 0.25, 2, 100};
  const Floats labels = {0, 1, 0, 1, 0, 1, 0.25};
  const Output losses = Garbage(7), dscores = Garbage(7);
  device_->SigmoidCrossEntropy(7, 2.5f, *Input(scores), *Input(labels), losses.get(),
                               dscores.get());
  const auto expected = reference::SigmoidCrossEntropy(2.5, scores, labels);
  ExpectNear(losses, expected.losses, 1e-6);
  ExpectNear(dscores, expected.dscores, 1e-6);
}

TEST_P(DeviceConformanceTest, ComputesMeanSquaredError) {
  for (int64_t rows : {1, 3, 4, 129, 301}) {
    SCOPED_TRACE(rows);
    const Floats scores = Random(rows, 17), targets = Random(rows, 18);
    const Output losses = Garbage(rows), dscores = Garbage(rows);
    device_->MeanSquaredError(rows, 0.125f, *Input(scores), *Input(targets), losses.get(),
                              dscores.get());
    const auto expected = reference::MeanSquaredError(0.125, scores, targets);
    ExpectNear(losses, expected.losses, 1e-6);
    ExpectNear(dscores, expected.dscores, 1e-6);
  }
}

TEST_P(DeviceConformanceTest, ComputesHuberLoss) {
  for (int64_t rows : {0, 1, 3, 4, 129, 301}) {
    for (float delta : {0.125f, 1.0f, 5.0f}) {
      SCOPED_TRACE(testing::Message() << rows << " " << delta);
      const Floats scores = Random(rows, 27), targets = Random(rows, 28);
      const Output losses = Garbage(rows), dscores = Garbage(rows);
      device_->HuberLoss(rows, delta, 0.75f, *Input(scores), *Input(targets), losses.get(),
                         dscores.get());
      const auto expected = reference::HuberLoss(delta, 0.75, scores, targets);
      ExpectNear(losses, expected.losses, 1e-6);
      ExpectNear(dscores, expected.dscores, 1e-6);
    }
  }
}

TEST_P(DeviceConformanceTest, HuberLossAroundDelta) {
  const Output losses = Garbage(6), dscores = Garbage(6);
  device_->HuberLoss(6, 2, 1, *Input({1, 2, 4, -1, -2, -1e30f}), *Input(Floats(6, 0.0f)),
                     losses.get(), dscores.get());
  EXPECT_EQ(Read(losses), Floats({0.5f, 2, 6, 0.5f, 2, 2e30f}));
  EXPECT_EQ(Read(dscores), Floats({1, 2, 2, -1, -2, -2}));
}

TEST_P(DeviceConformanceTest, RepeatsHuberLoss) {
  constexpr int64_t kRows = 33;
  const Memory scores = Allocate(kRows), targets = Input(Random(kRows, 29));
  const Output losses = Garbage(kRows), dscores = Garbage(kRows);
  const Output direct_losses = Garbage(kRows), direct_dscores = Garbage(kRows);
  for (uint64_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    device_->CopyToDevice(Random(kRows, 30 + i), scores.get());
    const auto run = [&](const Output& out, const Output& gradient) {
      device_->HuberLoss(kRows, 0.5f, 1, *scores, *targets, out.get(), gradient.get());
    };
    run(direct_losses, direct_dscores);
    device_->Repeat(14, [&] { run(losses, dscores); });
    EXPECT_EQ(Read(losses), Read(direct_losses));
    EXPECT_EQ(Read(dscores), Read(direct_dscores));
  }
}

TEST_P(DeviceConformanceTest, LossesWithoutGradients) {
  const Memory scores = Input({1, 2}), labels = Input({0, 1});
  const Output one = Garbage(1), two = Garbage(2);
  device_->SoftmaxCrossEntropy(1, 2, 1, *scores, *labels, one.get(), nullptr);
  ExpectNear(one, {std::log(1 + std::exp(1.0))}, 1e-6);
  device_->SigmoidCrossEntropy(2, 1, *scores, *labels, two.get(), nullptr);
  ExpectNear(two, {std::log(1 + std::exp(1.0)), std::log(1 + std::exp(-2.0))}, 1e-6);
  device_->MeanSquaredError(2, 1, *scores, *labels, two.get(), nullptr);
  EXPECT_EQ(Read(two), Floats({1, 1}));
  device_->HuberLoss(2, 0.5f, 1, *scores, *labels, two.get(), nullptr);
  EXPECT_EQ(Read(two), Floats({0.375f, 0.375f}));
}

TEST_P(DeviceConformanceTest, LossesKeepNotANumberVisible) {
  Floats scores = Random(3 * 40, 19);
  scores[40 + 37] = kNan;
  const Output losses = Garbage(3), dscores = Garbage(3 * 40);
  device_->SoftmaxCrossEntropy(3, 40, 1, *Input(scores), *Input({0, 1, 2}), losses.get(),
                               dscores.get());
  const Floats softmax = Read(losses);
  EXPECT_TRUE(std::isfinite(softmax[0]) && std::isnan(softmax[1]) && std::isfinite(softmax[2]));
  EXPECT_TRUE(std::isnan(Read(dscores)[40 + 37]));
  const Memory bad = Input({0, kNan, 0}), labels = Input({0, 1, 1});
  device_->SigmoidCrossEntropy(3, 1, *bad, *labels, losses.get(), nullptr);
  EXPECT_TRUE(std::isnan(Read(losses)[1]));
  device_->MeanSquaredError(3, 1, *bad, *labels, losses.get(), nullptr);
  EXPECT_TRUE(std::isnan(Read(losses)[1]));
  device_->HuberLoss(3, 1, 1, *bad, *labels, losses.get(), dscores.get());
  EXPECT_TRUE(std::isnan(Read(losses)[1]));
  EXPECT_TRUE(std::isnan(Read(dscores)[1]));
}

}  // namespace
}  // namespace keelson
