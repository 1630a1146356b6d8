// Device::Repeat as CUDA graphs.
#include <functional>

#include "testing/device/emulated_gpu_testing.h"

namespace keelson {
namespace {

class CudaGraphsTest : public EmulatedGpuTest {
 protected:
  // Scales x by 2.
  void Double(uint64_t key, DeviceMemory* x) {
    device_->Repeat(key, [&] { device_->Scale(2, x->size(), x); });
  }
};

TEST_F(CudaGraphsTest, RunsOnceThenCapturesThenLaunches) {
  Open();
  const Memory x = Put({1, 3});
  int calls = 0;
  for (int i = 0; i < 6; ++i) {
    device_->Repeat(5, [&] {
      ++calls;
      device_->Scale(2, 2, x.get());
    });
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(Now().graph_captures, 1);
  EXPECT_EQ(Now().graph_launches, 5);
  EXPECT_EQ(Get(*x), Floats({64, 192}));
}

TEST_F(CudaGraphsTest, FollowsTheSeedAndContents) {
  Open();
  const Memory x = *device_->Allocate(500), y = *device_->Allocate(500);
  const Memory direct = *device_->Allocate(500);
  for (uint64_t i = 0; i < 5; ++i) {
    device_->SetSeed(77 * i);
    device_->CopyToDevice(Floats(500, static_cast<float>(i + 1)), x.get());
    device_->Repeat(1, [&] { device_->Dropout(0.4f, 9, 500, *x, y.get()); });
    device_->Dropout(0.4f, 9, 500, *x, direct.get());
    EXPECT_EQ(Get(*y), Get(*direct)) << i;
  }
  EXPECT_EQ(Now().graph_launches, 4);
}

TEST_F(CudaGraphsTest, KeepsEightKeys) {
  Open();
  const Memory x = Put({1});
  for (int round = 0; round < 3; ++round) {
    for (uint64_t key = 0; key < 10; ++key) Double(key, x.get());
  }
  EXPECT_EQ(Now().graph_captures, 8);
  EXPECT_EQ(Now().graph_launches, 16);
  EXPECT_EQ(Get(*x), Floats({1 << 30}));
}

TEST_F(CudaGraphsTest, WhateverIsFreedForgetsGraphs) {
  Open();
  const Memory x = *device_->Allocate(4);
  const auto layout = WholeArrayLayout(WireFormat::kInt8, 4);
  const std::vector<std::function<void()>> frees = {
      [&] { device_->Allocate(4).IgnoreError(); },
      [&] { device_->AllocateHost(4).IgnoreError(); },
      [&] { device_->NewEvent().IgnoreError(); },
      [&] { device_->NewGradientEncoder(layout).IgnoreError(); },
      [&] { device_->NewValueDecoder(WireFormat::kFloat16, 4).IgnoreError(); },
  };
  for (int i = 0; i < 3; ++i) Double(1, x.get());
  int64_t captures = 1;
  for (const auto& free_something : frees) {
    EXPECT_EQ(Now().graph_captures, captures);
    const int64_t launches = Now().graph_launches;
    free_something();
    Double(1, x.get());
    EXPECT_EQ(Now().graph_launches, launches);
    for (int i = 0; i < 2; ++i) Double(1, x.get());
    ++captures;
    EXPECT_EQ(Now().graph_launches, launches + 2);
  }
  EXPECT_EQ(Now().graph_captures, captures);
}

// Scratch memory grows, so its last place is freed, which the first key's graph uses.
TEST_F(CudaGraphsTest, ALargerKeyMakesTheOthersForgotten) {
  Open();
  const Memory small = Put(Floats(64 * 3, 1)), large = Put(Floats(5000 * 70, 1));
  const Memory sums = *device_->Allocate(70);
  const auto sum_small = [&] {
    device_->Repeat(1, [&] { device_->BiasGradient(64, 3, *small, sums.get()); });
  };
  for (int i = 0; i < 3; ++i) sum_small();
  EXPECT_EQ(Now().graph_captures, 1);
  for (int i = 0; i < 3; ++i) {
    device_->Repeat(2, [&] { device_->BiasGradient(5000, 70, *large, sums.get()); });
  }
  EXPECT_EQ(Get(*sums), Floats(70, 5000));
  EXPECT_EQ(Now().graph_captures, 2);
  for (int i = 0; i < 3; ++i) {
    sum_small();
    EXPECT_EQ(Get(*sums)[2], 64);
  }
  EXPECT_EQ(Now().graph_captures, 3);
}

// A direct download and one of a graph share an encoder, whose error feedback is the sum of both.
TEST_F(CudaGraphsTest, DownloadsWithinAndWithoutStayInOrder) {
  Floats expected;
  for (uint64_t seed : OrderSeeds()) {
    OpenWithSeed(seed);
    const auto encoder = *device_->NewGradientEncoder(WholeArrayLayout(WireFormat::kInt8, 300));
    const auto host = *device_->AllocateHost(304);
    const auto done = *device_->NewEvent();
    Floats values(300);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.37f * static_cast<float>(i);
    const Memory gradient = Put(values);
    Floats bytes;
    for (int i = 0; i < 4; ++i) {
      device_->Repeat(1, [&] {
        device_->Download(*gradient, nullptr, encoder.get(), host->bytes(), done.get());
      });
      device_->Download(*gradient, nullptr, encoder.get(), host->bytes(), done.get());
    }
    ASSERT_TRUE(device_->Await(*done).ok());
    bytes.assign(host->bytes().begin(), host->bytes().end());
    if (expected.empty()) expected = bytes;
    EXPECT_EQ(bytes, expected) << "order seed " << seed;
  }
}

TEST_F(CudaGraphsTest, EventsOfAGraphAreUnderWayFromTheLaunch) {
  Open();
  const Memory x = *device_->Allocate(100);
  const auto event = *device_->NewEvent();
  for (int i = 0; i < 4; ++i) {
    device_->Repeat(1, [&] {
      for (int j = 0; j < 50; ++j) device_->Fill(1, 100, x.get());
      device_->Record(event.get());
    });
    EXPECT_FALSE(device_->Passed(*event)) << i;
    ASSERT_TRUE(device_->Await(*event).ok());
    EXPECT_TRUE(device_->Passed(*event));
  }
}

}  // namespace
}  // namespace keelson
