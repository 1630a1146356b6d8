// Streams, page-locked memory and what makes the host wait.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "testing/device/emulated_gpu_testing.h"

namespace keelson {
namespace {

class CudaStreamsTest : public EmulatedGpuTest {};

// A model of one variable and the way of its values and gradients, as a worker uses them.
struct Trainee {
  static constexpr int64_t kSize = 3000;

  Trainee(Device* device, WireFormat format)
      : device(device),
        layout(WholeArrayLayout(format, kSize)),
        encoder(*device->NewGradientEncoder(layout)),
        decoder(*device->NewValueDecoder(WireFormat::kFloat16, kSize)),
        uploaded(*device->NewEvent()),
        used(*device->NewEvent()),
        downloaded(*device->NewEvent()),
        from(*device->AllocateHost(EncodedBytes(WireFormat::kFloat16, kSize))),
        to(*device->AllocateHost(layout.bytes)),
        batch(*device->Allocate(kSize)),
        values(*device->Allocate(kSize)),
        gradient(*device->Allocate(kSize)) {
    std::fill(from->bytes().begin(), from->bytes().end(), 0x3c);  // about 1.06
  }

  void Step(uint64_t seed) {
    device->SetSeed(seed);
    device->CopyToDevice(Floats(kSize, static_cast<float>(seed)), batch.get());
    device->Upload(from->bytes(), used.get(), decoder.get(), values.get(), uploaded.get());
    device->Repeat(1, [&] {
      device->WaitFor(*uploaded);
      device->Dropout(0.5f, 1, kSize, *batch, gradient.get());
      device->Axpy(2, kSize, *values, gradient.get());
      device->Record(used.get());
      device->Download(*gradient, nullptr, encoder.get(), to->bytes(), downloaded.get());
    });
  }

  Device* const device;
  const WireLayout layout;
  const std::unique_ptr<GradientEncoder> encoder;
  const std::unique_ptr<ValueDecoder> decoder;
  const std::unique_ptr<DeviceEvent> uploaded, used, downloaded;
  const std::unique_ptr<HostMemory> from, to;
  const Memory batch, values, gradient;
};

TEST_F(CudaStreamsTest, AWarmStepMakesTheHostWaitForNothing) {
  for (WireFormat format : {WireFormat::kFloat32, WireFormat::kBfloat16, WireFormat::kInt8}) {
    Open();
    Trainee trainee(device_.get(), format);
    for (uint64_t step = 0; step < 3; ++step) {
      trainee.Step(step);
      ASSERT_TRUE(device_->Await(*trainee.downloaded).ok());
    }
    const cuda_emulation::Statistics before = Now();
    trainee.Step(3);
    static_cast<void>(device_->Passed(*trainee.downloaded));
    EXPECT_EQ(Waits(Now()) - Waits(before), 0) << WireFormatName(format);
    EXPECT_EQ(Now().graph_launches - before.graph_launches, 1);
    ASSERT_TRUE(device_->Await(*trainee.downloaded).ok());
    EXPECT_EQ(Waits(Now()) - Waits(before), 1);
  }
}

TEST_F(CudaStreamsTest, StepsThatTheHostDoesNotWaitForStayInOrder) {
  Floats expected;
  for (uint64_t seed : OrderSeeds()) {
    OpenWithSeed(seed);
    Trainee trainee(device_.get(), WireFormat::kFloat32);
    for (uint64_t step = 0; step < 6; ++step) trainee.Step(step);
    ASSERT_TRUE(device_->Await(*trainee.downloaded).ok());
    const auto* const gradient = reinterpret_cast<const float*>(trainee.to->bytes().data());
    const Floats gradients(gradient, gradient + Trainee::kSize);
    if (expected.empty()) expected = gradients;
    EXPECT_EQ(gradients, expected) << "order seed " << seed;
  }
}

// The uploaded value must not overtake the operation that reads the last one.
TEST_F(CudaStreamsTest, UploadsWaitForWhatTheyAreToldTo) {
  for (bool by_event : {false, true}) {
    for (uint64_t seed : OrderSeeds()) {
      OpenWithSeed(seed);
      const auto decoder = *device_->NewValueDecoder(WireFormat::kFloat32, 100);
      const auto host = *device_->AllocateHost(400);
      const auto read = *device_->NewEvent(), done = *device_->NewEvent();
      std::fill(host->bytes().begin(), host->bytes().end(), 0);
      const Memory value = Put(Floats(100, 5)), copy = *device_->Allocate(100);
      device_->Axpy(1, 100, *value, copy.get());
      device_->Record(read.get());
      device_->Fill(9, 100, copy.get());
      device_->Axpy(1, 100, *value, copy.get());
      if (by_event) device_->Record(read.get());
      device_->Upload(host->bytes(), by_event ? read.get() : nullptr, decoder.get(), value.get(),
                      done.get());
      device_->WaitFor(*done);
      device_->Axpy(1, 100, *value, copy.get());
      EXPECT_EQ(Get(*copy), Floats(100, 14)) << "order seed " << seed;
    }
  }
}

TEST_F(CudaStreamsTest, FreedMemoryOutlivesTheWorkOnIt) {
  for (uint64_t seed : OrderSeeds()) {
    OpenWithSeed(seed);
    const Memory sum = *device_->Allocate(1000);
    const auto host = *device_->AllocateHost(4000);
    const auto done = *device_->NewEvent();
    {
      const Memory x = *device_->Allocate(1000);
      const auto encoder =
          *device_->NewGradientEncoder(WholeArrayLayout(WireFormat::kBfloat16, 1000));
      device_->Fill(3, 1000, x.get());
      device_->Axpy(1, 1000, *x, sum.get());
      device_->Download(*x, nullptr, encoder.get(), host->bytes(), done.get());
    }
    EXPECT_EQ(host->bytes()[1], 0x40);  // bfloat16 3 is 0x4040
    EXPECT_EQ(Get(*sum), Floats(1000, 3));
  }
}

TEST_F(CudaStreamsTest, CopiesWaitOnlyWhenAllPiecesAreInUse) {
  constexpr int64_t kPiece = 1 << 19;  // floats
  Open();
  std::vector<Memory> memories;
  for (int i = 0; i < 20; ++i) memories.push_back(*device_->Allocate(kPiece + i));
  ASSERT_TRUE(device_->Synchronize().ok());
  const cuda_emulation::Statistics before = Now();
  for (int i = 0; i < 20; ++i) {
    device_->CopyToDevice(Floats(kPiece + i, static_cast<float>(i)), memories[i].get());
    if (i == 3) {
      EXPECT_EQ(Now().event_synchronizations - before.event_synchronizations, 0);
    }
  }
  EXPECT_EQ(Now().allocations - before.allocations, 1);
  for (int i = 0; i < 20; ++i) {
    const Floats values = Get(*memories[i]);
    EXPECT_EQ(values.front(), static_cast<float>(i));
    EXPECT_EQ(values.back(), static_cast<float>(i));
  }
}

TEST_F(CudaStreamsTest, PageLockedMemoryIsUsedAgain) {
  Open();
  std::unique_ptr<HostMemory> first = *device_->AllocateHost(100000);
  const uint8_t* const data = first->bytes().data();
  const auto other = *device_->AllocateHost(100000);
  EXPECT_NE(other->bytes().data(), data);
  const int64_t allocations = Now().allocations;
  first.reset();
  // The next size is in the same class of sizes.
  first = *device_->AllocateHost(101000);
  EXPECT_EQ(first->bytes().data(), data);
  EXPECT_EQ(first->bytes().size(), 101000u);
  EXPECT_EQ(Now().allocations, allocations);
  const auto larger = *device_->AllocateHost(200000);
  EXPECT_EQ(Now().allocations, allocations + 1);
}

TEST_F(CudaStreamsTest, WhatWaitsOrCopiesHasNoPlaceInARepetition) {
  const std::vector<std::pair<std::string, std::function<void(Device*, DeviceMemory*)>>> calls = {
      {"CopyToDevice", [](Device* device, DeviceMemory* x) { device->CopyToDevice({1}, x); }},
      {"CopyIntegersToDevice",
       [](Device* device, DeviceMemory* x) { device->CopyIntegersToDevice({1}, x); }},
      {"SetSeed", [](Device* device, DeviceMemory*) { device->SetSeed(1); }},
      {"Allocate", [](Device* device, DeviceMemory*) { device->Allocate(1).IgnoreError(); }},
      {"NewEvent", [](Device* device, DeviceMemory*) { device->NewEvent().IgnoreError(); }},
      {"Synchronize", [](Device* device, DeviceMemory*) { device->Synchronize().IgnoreError(); }},
      {"Repeat", [](Device* device, DeviceMemory*) { device->Repeat(2, [] {}); }},
  };
  for (const auto& [name, call] : calls) {
    Open();
    const Memory x = *device_->Allocate(1);
    device_->Repeat(1, [&, &call = call] { call(device_.get(), x.get()); });
    EXPECT_EQ(device_->status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(device_->status().message(),
              "device cuda:0: " + name + ": expected outside of Repeat, found within");
  }
}

TEST_F(CudaStreamsTest, WireSpansMustBeLargeEnough) {
  for (bool download : {false, true}) {
    Open();
    const Memory x = *device_->Allocate(10);
    const auto host = *device_->AllocateHost(19);
    const auto done = *device_->NewEvent();
    const auto decoder = *device_->NewValueDecoder(WireFormat::kFloat16, 10);
    const auto encoder = *device_->NewGradientEncoder(WholeArrayLayout(WireFormat::kFloat16, 10));
    if (download) {
      device_->Download(*x, nullptr, encoder.get(), host->bytes(), done.get());
    } else {
      device_->Upload(host->bytes(), nullptr, decoder.get(), x.get(), done.get());
    }
    EXPECT_EQ(device_->status().message(),
              absl::StrCat("device cuda:0: ", download ? "Download" : "Upload",
                           ": expected 20 bytes of the host, found 19"));
  }
}

}  // namespace
}  // namespace keelson
