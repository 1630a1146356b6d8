#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

TEST_P(DeviceConformanceTest, HasAName) { EXPECT_FALSE(device_->name().empty()); }

TEST_P(DeviceConformanceTest, MemoryStartsAsZeros) {
  for (int round = 0; round < 2; ++round) {
    const Memory memory = Allocate(1001);
    EXPECT_EQ(Read(*memory), Floats(1001, 0.0f));
    device_->Fill(7, 1001, memory.get());
  }
  EXPECT_EQ(Allocate(0)->size(), 0);
}

TEST_P(DeviceConformanceTest, HostSpanIsTheMemoryItselfOrEmpty) {
  const Floats values = Random(100, 1);
  const Memory memory = Exact(values);
  const absl::Span<float> host = device_->HostSpan(memory.get());
  if (host.empty()) return;
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(Floats(host.begin(), host.end()), values);
  host[99] = 7;
  EXPECT_EQ(Read(*memory).back(), 7);
  // Onto itself.
  device_->CopyToDevice(host.subspan(0, 50), memory.get());
  ASSERT_TRUE(device_->CopyToHost(*memory, host.subspan(0, 60)).ok());
  EXPECT_EQ(Read(*memory), Floats(host.begin(), host.end()));
}

TEST_P(DeviceConformanceTest, CopiesThereAndBack) {
  for (int64_t n : {0, 1, 3, 4, 5, 777}) {
    const Floats values = Random(n, 1);
    const Memory memory = Exact(values);
    EXPECT_EQ(memory->size(), n);
    EXPECT_EQ(Read(*memory), values);
  }
}

TEST_P(DeviceConformanceTest, CopiesTouchLeadingElementsOnly) {
  const Memory memory = Exact({1, 2, 3, 4, 5});
  device_->CopyToDevice(Floats{9, 8}, memory.get());
  device_->Fill(7, 1, memory.get());
  EXPECT_EQ(Read(*memory), Floats({7, 8, 3, 4, 5}));
  Floats two(2);
  ASSERT_TRUE(device_->CopyToHost(*memory, absl::MakeSpan(two)).ok());
  EXPECT_EQ(two, Floats({7, 8}));
}

TEST_P(DeviceConformanceTest, Fills) {
  for (int64_t n : {0, 1, 3, 4, 5, 31, 32, 33, 127, 129, 1023, 1025, 40003}) {
    const Output x = Garbage(n);
    device_->Fill(-2.5f, n, x.get());
    EXPECT_EQ(Read(x), Floats(n, -2.5f)) << n;
  }
}

TEST_P(DeviceConformanceTest, HostMemoryMayBeReusedAfterACopy) {
  // More copies than a device could keep waiting, each of several sizes.
  constexpr int kRounds = 40;
  std::vector<Memory> memories;
  Floats values;
  for (int i = 0; i < kRounds; ++i) {
    values.assign(1 + 5000 * (i % 4), static_cast<float>(i));
    memories.push_back(Allocate(static_cast<int64_t>(values.size())));
    device_->CopyToDevice(values, memories.back().get());
    values.assign(values.size(), -1.0f);
  }
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_EQ(Read(*memories[i]), Floats(1 + 5000 * (i % 4), static_cast<float>(i)));
  }
}

TEST_P(DeviceConformanceTest, ACopyTakesItsPlaceAmongTheOperations) {
  const Memory x = Exact({1, 2, 3});
  const Output sum = InOut({0, 0, 0});
  for (int i = 0; i < 10; ++i) {
    const auto value = static_cast<float>(1 << i);
    device_->CopyToDevice(Floats(3, value), x.get());
    device_->Axpy(1, 3, *x, sum.get());
  }
  EXPECT_EQ(Read(sum), Floats(3, 1023.0f));
}

TEST_P(DeviceConformanceTest, CopiesIntegersBitByBit) {
  for (int64_t n : {0, 1, 5, 777}) {
    SCOPED_TRACE(n);
    std::vector<int32_t> values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<int32_t>(i * 2654435761);
    const Memory memory = Exact(Floats(n + 2, 3.0f));
    device_->CopyIntegersToDevice(values, memory.get());
    const Floats found = Read(*memory);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), found.begin(),
                           [](int32_t x, float y) { return x == std::bit_cast<int32_t>(y); }));
    EXPECT_EQ(Floats(found.end() - 2, found.end()), Floats(2, 3.0f));
  }
}

TEST_P(DeviceConformanceTest, IntegersMayBeReusedAfterACopy) {
  constexpr int32_t kRounds = 40;
  constexpr size_t kIntegers = 5000;
  std::vector<Memory> memories;
  std::vector<int32_t> values(kIntegers);
  for (int32_t i = 0; i < kRounds; ++i) {
    values.assign(kIntegers, i);
    memories.push_back(Allocate(kIntegers));
    device_->CopyIntegersToDevice(values, memories.back().get());
    values.assign(kIntegers, -1);
  }
  for (int32_t i = 0; i < kRounds; ++i) {
    values.assign(kIntegers, i);
    EXPECT_EQ(std::memcmp(Read(*memories[i]).data(), values.data(), kIntegers * sizeof(int32_t)),
              0);
  }
}

TEST_P(DeviceConformanceTest, IntegersAlreadyInTheirPlaceStay) {
  const Memory memory = Allocate(3);
  const absl::Span<float> host = device_->HostSpan(memory.get());
  if (host.empty()) return;
  ASSERT_TRUE(device_->Synchronize().ok());
  auto* const integers = reinterpret_cast<int32_t*>(host.data());
  integers[2] = 7;
  device_->CopyIntegersToDevice(absl::MakeConstSpan(integers, 3), memory.get());
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(integers[2], 7);
}

TEST_P(DeviceConformanceTest, AllocatesAlignedHostMemory) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{4096}, size_t{1000001}}) {
    auto memory = device_->AllocateHost(bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const absl::Span<uint8_t> span = (*memory)->bytes();
    ASSERT_EQ(span.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(span.data()) % 64, 0u);
    if (bytes == 0) continue;
    std::memset(span.data(), 0xa5, bytes);
    EXPECT_EQ(span.front(), 0xa5);
    EXPECT_EQ(span.back(), 0xa5);
  }
}

TEST_P(DeviceConformanceTest, AnEventHasPassedFromTheStart) {
  const auto event = *device_->NewEvent();
  EXPECT_TRUE(device_->Passed(*event));
  EXPECT_TRUE(device_->Await(*event).ok());
  const Output x = Garbage(3);
  device_->WaitFor(*event);
  device_->Fill(1, 3, x.get());
  EXPECT_EQ(Read(x), Floats(3, 1.0f));
}

TEST_P(DeviceConformanceTest, AnEventPassesAfterTheOperationsBeforeIt) {
  const auto event = *device_->NewEvent();
  const Memory x = Allocate(1000);
  const absl::Span<float> host = device_->HostSpan(x.get());
  for (int i = 1; i <= 10; ++i) {
    device_->Fill(static_cast<float>(i), 1000, x.get());
    device_->Record(event.get());
    ASSERT_TRUE(device_->Await(*event).ok());
    EXPECT_TRUE(device_->Passed(*event));
    if (!host.empty()) {
      EXPECT_EQ(host[999], static_cast<float>(i));
    }
  }
}

TEST_P(DeviceConformanceTest, AnEventPassesWhileNobodyWaitsForIt) {
  const auto event = *device_->NewEvent();
  const Memory x = Allocate(1000);
  device_->Fill(1, 1000, x.get());
  device_->Record(event.get());
  if (!device_->asynchronous()) {
    EXPECT_TRUE(device_->Passed(*event));
  }
  const absl::Duration end = Clock::Real()->Monotonic() + kPatience;
  while (!device_->Passed(*event)) {
    ASSERT_LT(Clock::Real()->Monotonic(), end);
    std::this_thread::yield();
  }
  EXPECT_TRUE(device_->Await(*event).ok());
}

TEST_P(DeviceConformanceTest, MeasuresTheTimeBetweenEvents) {
  const auto first = *device_->NewEvent(), second = *device_->NewEvent(),
             third = *device_->NewEvent();
  const Memory x = Allocate(10000);
  device_->Record(first.get());
  for (int i = 0; i < 10; ++i) device_->Fill(1, 10000, x.get());
  device_->Record(second.get());
  device_->Record(third.get());
  ASSERT_TRUE(device_->Await(*third).ok());
  const double one = device_->MillisecondsBetween(*first, *second);
  const double both = device_->MillisecondsBetween(*first, *third);
  EXPECT_GE(one, 0);
  EXPECT_GE(both, one);
  EXPECT_LT(both, absl::ToDoubleMilliseconds(kPatience));
  EXPECT_EQ(device_->MillisecondsBetween(*first, *first), 0);
}

TEST_P(DeviceConformanceTest, EmptyExtentsDoNothing) {
  const Memory empty = Allocate(0);
  const Output one = InOut({1, 1, 1});
  device_->CopyToDevice({}, empty.get());
  device_->Fill(2, 0, one.get());
  device_->Axpy(1, 0, *empty, one.get());
  device_->Scale(2, 0, one.get());
  device_->MatMul({0, 3, 3}, *empty, *one, {}, one.get());
  device_->MatMul({3, 0, 3}, *one, *empty, {.activation = ActivationKind::kRelu}, one.get());
  device_->Activate(ActivationKind::kTanh, 0, *empty, one.get());
  device_->ActivateBackward(ActivationKind::kTanh, 0, *empty, *empty, one.get());
  device_->Dropout(0.5f, 1, 0, *empty, one.get());
  device_->Conv2D({0, 3, 3, 1, 1, 1, 1, 3}, *empty, *Input(Floats(9, 1.0f)), {}, one.get());
  device_->Conv2DBackwardData({0, 3, 3, 1, 1, 1, 1, 3}, *Input(Floats(9, 1.0f)), *empty, one.get());
  device_->MaxPool({0, 2, 2, 1, 1, 1, 2, 2}, *empty, one.get());
  device_->MaxPoolBackward({0, 2, 2, 1, 1, 1, 2, 2}, *empty, *empty, *empty, one.get());
  device_->AvgPool({0, 2, 2, 1, 1, 1, 2, 2}, *empty, one.get());
  device_->AvgPoolBackward({0, 2, 2, 1, 1, 1, 2, 2}, *empty, one.get());
  device_->SoftmaxCrossEntropy(0, 3, 1, *empty, *empty, one.get(), one.get());
  device_->SigmoidCrossEntropy(0, 1, *empty, *empty, one.get(), one.get());
  device_->MeanSquaredError(0, 1, *empty, *empty, one.get(), one.get());
  device_->ClipByGlobalNorm(0.1f, {});
  EXPECT_EQ(Read(one), Floats(3, 1.0f));
}

TEST_P(DeviceConformanceTest, SumsOfNothingAreZero) {
  const Memory empty = Allocate(0);
  const Output product = Garbage(6), sums = Garbage(3), sum = Garbage(1), dfilter = Garbage(9);
  const Output kernel_gradient = Garbage(6), bias_gradient = Garbage(3), biased = Garbage(6);
  device_->MatMul({2, 3, 0}, *empty, *empty, {}, product.get());
  device_->MatMul({2, 3, 0}, *empty, *empty, {.bias = Input({1, 2, 3}).get()}, biased.get());
  device_->BiasGradient(0, 3, *empty, sums.get());
  device_->Sum(0, *empty, sum.get());
  device_->DenseGradients(0, 2, 3, *empty, *empty, kernel_gradient.get(), bias_gradient.get());
  device_->Conv2DBackwardFilter({0, 3, 3, 1, 1, 1, 1, 3}, *empty, *empty, dfilter.get());
  EXPECT_EQ(Read(product), Floats(6, 0.0f));
  EXPECT_EQ(Read(biased), Floats({1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(Read(sums), Floats(3, 0.0f));
  EXPECT_EQ(Read(sum), Floats(1, 0.0f));
  EXPECT_EQ(Read(kernel_gradient), Floats(6, 0.0f));
  EXPECT_EQ(Read(bias_gradient), Floats(3, 0.0f));
  EXPECT_EQ(Read(dfilter), Floats(9, 0.0f));
}

TEST_P(DeviceConformanceTest, TheFirstFailureStays) {
  EXPECT_TRUE(device_->Synchronize().ok());
  EXPECT_TRUE(device_->status().ok());
  const auto event = *device_->NewEvent();
  const Memory small = Exact({1, 2, 3});
  device_->Fill(0, 4, small.get());
  device_->Scale(2, 3, small.get());
  device_->Record(event.get());
  const absl::Status status = device_->Synchronize();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("Fill: expected memory of 4 floats, found 3"));
  Floats values(3);
  EXPECT_EQ(device_->CopyToHost(*small, absl::MakeSpan(values)), status);
  device_->Axpy(1, 100, *small, small.get());
  EXPECT_EQ(device_->Synchronize(), status);
  EXPECT_EQ(device_->status(), status);
  EXPECT_EQ(device_->Await(*event), status);
  EXPECT_TRUE(device_->Passed(*event));
}

TEST_P(DeviceConformanceTest, EveryOperationChecksItsOperands) {
  // One operation each, of a device of its own, whose operand `small` holds one float too few.
  struct Case {
    const char* message;
    std::function<void(Device&, DeviceMemory& small, DeviceMemory& large)> operation;
  };
  const ConvGeometry conv{1, 1, 1, 6, 1, 1, 6, 1, 1, 0, 0};
  const PoolGeometry pool{1, 1, 1, 6, 1, 1, 1, 1, 0, 0};
  const BatchNormGeometry norm{1, 6};
  const std::vector<int32_t> six(6);
  const std::
      vector<Case>
          cases =
              {
                  {"CopyIntegersToDevice: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.CopyIntegersToDevice(six, &s); }},
                  {"MatMul: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.MatMul({2, 3, 3}, l, l, {}, &s);
                   }},
                  {"MatMul: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.MatMul({1, 6, 1}, l, l, {.bias = &s}, &l);
                   }},
                  {"DenseGradients: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.DenseGradients(1, 1, 6, l, l, &l, &s); }},
                  {"BiasGradient: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.BiasGradient(2, 3, s, &l); }},
                  {"Axpy: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Axpy(1, 6, l, &s); }},
                  {"Scale: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Scale(1, 6, &s); }},
                  {"Sum: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Sum(6, s, &l); }},
                  {"Conv2D: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.Conv2D(conv, s, l, {}, &l); }},
                  {"Conv2D: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.Conv2D(conv, l, l, {.bias = &s}, &l); }},
                  {"Conv2DBackwardData: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.Conv2DBackwardData(conv, l, l, &s); }},
                  {"Conv2DBackwardFilter: expected memory of 36 floats",
                   [=](Device& d, auto& s, auto& l) { d.Conv2DBackwardFilter(conv, l, l, &s); }},
                  {"MaxPool: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.MaxPool(pool, l, &s); }},
                  {"MaxPoolBackward: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.MaxPoolBackward(pool, l, s, l, &l); }},
                  {"AvgPool: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.AvgPool(pool, l, &s); }},
                  {"AvgPoolBackward: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.AvgPoolBackward(pool, s, &l); }},
                  {"GlobalAveragePool: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.GlobalAveragePool(2, 4, 3, l, &s); }},
                  {"GlobalAveragePoolBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.GlobalAveragePoolBackward(1, 3, 2, l, &s);
                   }},
                  {"Add: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Add(6, l, s, &l); }},
                  {"Multiply: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Multiply(6, s, l, &l); }},
                  {"CopyColumns: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.CopyColumns(2, 1, s, 3, 2, &l, 4, 0); }},
                  {"CopyColumns: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.CopyColumns(2, 1, l, 4, 0, &s, 3, 2); }},
                  {"Activate: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.Activate(ActivationKind::kRelu, 6, s, &l);
                   }},
                  {"ActivateBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.ActivateBackward(ActivationKind::kRelu, 6, s, l, &l);
                   }},
                  {"Gate: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Gate(GateKind::kGelu, 6, l, &s); }},
                  {"GateBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.GateBackward(GateKind::kSilu, 6, s, l, &l);
                   }},
                  {"Dropout: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Dropout(0.5f, 0, 6, s, &l); }},
                  {"ScaleRows: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.ScaleRows(6, 2, s, &l); }},
                  {"ScaleRows: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.ScaleRows(3, 2, l, &s); }},
                  {"AddRowVector: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.AddRowVector(2, 6, 1, s, &l); }},
                  {"AddRowVector: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.AddRowVector(2, 3, 1, l, &s); }},
                  {"RowDots: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.RowDots(2, 3, 1, l, s, 0, &l); }},
                  {"RowDots: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.RowDots(6, 1, 1, l, l, 0, &s); }},
                  {"AddScaledRows: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.AddScaledRows(6, 1, 1, s, l, 0, &l); }},
                  {"AddScaledRows: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.AddScaledRows(3, 2, 1, l, l, 0, &s); }},
                  {"PairwiseDots: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.PairwiseDots({2, 3, 1}, s, &l);
                   }},
                  {"PairwiseDots: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.PairwiseDots({2, 3, 1}, l, &s);
                   }},
                  {"PairwiseDotsBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.PairwiseDotsBackward({2, 3, 1}, s, l, &l);
                   }},
                  {"PairwiseDotsBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.PairwiseDotsBackward({2, 3, 1}, l, s, &l);
                   }},
                  {"PairwiseDotsBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.PairwiseDotsBackward({2, 3, 1}, l, l, &s);
                   }},
                  {"Transpose: expected memory of 6 floats",
                   [](Device& d, auto& s,
                      auto& l) { d.Transpose({1, {1, 2, 3}, {0, 2, 1}}, s, &l); }},
                  {"Transpose: expected memory of 6 floats",
                   [](Device& d, auto& s,
                      auto& l) { d.Transpose({1, {1, 2, 3}, {0, 2, 1}}, l, &s); }},
                  {"InverseSquareRoot: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.InverseSquareRoot(6, 1, s, &l); }},
                  {"Softmax: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.Softmax(2, 3, s, &l); }},
                  {"SoftmaxBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.SoftmaxBackward(3, 2, l, s, &l); }},
                  {"BatchNorm: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) { d.BatchNorm(norm, l, &l, &l, &s, &l, &l); }},
                  {"BatchNormBackward: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) {
                     d.BatchNormBackward(norm, l, &l, l, l, l, &s, nullptr, nullptr);
                   }},
                  {"BatchNormInference: expected memory of 6 floats",
                   [=](Device& d, auto& s, auto& l) {
                     d.BatchNormInference(norm, l, &s, &l, l, l, &l);
                   }},
                  {"LayerNorm: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.LayerNorm({6, 1}, l, &l, &l, &l, &s, &l); }},
                  {"LayerNorm: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.LayerNorm({1, 6}, l, &s, &l, &l, &l, &l); }},
                  {"LayerNormBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.LayerNormBackward({6, 1}, l, &l, s, l, l, nullptr, nullptr, &l);
                   }},
                  {"LayerNormBackward: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.LayerNormBackward({1, 6}, l, &l, l, l, l, nullptr, &s, nullptr);
                   }},
                  {"SoftmaxCrossEntropy: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.SoftmaxCrossEntropy(2, 3, 1, l, l, &l, &s);
                   }},
                  {"SigmoidCrossEntropy: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.SigmoidCrossEntropy(6, 1, l, s, &l, nullptr);
                   }},
                  {"MeanSquaredError: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) {
                     d.MeanSquaredError(6, 1, l, s, &l, nullptr);
                   }},
                  {"HuberLoss: expected memory of 6 floats",
                   [](Device& d, auto& s, auto& l) { d.HuberLoss(6, 1, 1, l, l, &l, &s); }},
              };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const auto device = *GetParam().create(0);
    const Memory small = *device->Allocate(5), large = *device->Allocate(100);
    c.operation(*device, *small, *large);
    const absl::Status status = device->Synchronize();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(", found 5"));
  }
}

}  // namespace
}  // namespace keelson
