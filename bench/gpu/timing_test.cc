#include "bench/gpu/timing.h"

#include "absl/status/status.h"
#include "core/device/factory/device_factory.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

// Each call takes a millisecond; the clock moves with the calls.
class FakeTimer : public GpuTimer {
 public:
  void Begin() override { begin_ = calls; }
  void End() override { end_ = calls; }
  absl::StatusOr<double> Milliseconds() override {
    if (!status.ok()) return status;
    return static_cast<double>(end_ - begin_);
  }

  int calls = 0;
  absl::Status status;

 private:
  int begin_ = 0;
  int end_ = 0;
};

TEST(TimingTest, DividesByTheCalls) {
  FakeTimer timer;
  const auto spread =
      MillisecondsPerCall({.repetitions = 5, .milliseconds = 10}, &timer, [&] { ++timer.calls; });
  ASSERT_TRUE(spread.ok()) << spread.status();
  EXPECT_DOUBLE_EQ(spread->median, 1);
  // Three to warm up, one to guess, ten in each repetition.
  EXPECT_EQ(timer.calls, 3 + 1 + 5 * 10);
}

TEST(TimingTest, CallsOnceWhenACallIsLong) {
  FakeTimer timer;
  const auto spread =
      MillisecondsPerCall({.repetitions = 2, .milliseconds = 0.5}, &timer, [&] { ++timer.calls; });
  ASSERT_TRUE(spread.ok()) << spread.status();
  EXPECT_EQ(timer.calls, 3 + 1 + 2);
}

TEST(TimingTest, AFailureOfTheGpuIsTheResult) {
  FakeTimer timer;
  timer.status = absl::InternalError("the GPU is gone");
  const auto spread = MillisecondsPerCall({}, &timer, [&] { ++timer.calls; });
  EXPECT_EQ(spread.status().message(), "the GPU is gone");
}

TEST(TimingTest, TheFastestCallHasTheGreatestRate) {
  const Spread rate = PerSecond(100, {.median = 10, .min = 5, .max = 20});
  EXPECT_DOUBLE_EQ(rate.median, 10'000);
  EXPECT_DOUBLE_EQ(rate.min, 5'000);
  EXPECT_DOUBLE_EQ(rate.max, 20'000);
  EXPECT_EQ(PerSecond(100, {}).median, 0);
}

TEST(TimingTest, ADeviceTimerFollowsTheDevice) {
  auto device = CreateDevice("cpu");
  ASSERT_TRUE(device.ok()) << device.status();
  auto timer = NewDeviceTimer(device->get());
  ASSERT_TRUE(timer.ok()) << timer.status();
  auto memory = (*device)->Allocate(1 << 20);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto spread = MillisecondsPerCall({.repetitions = 3, .milliseconds = 1}, timer->get(),
                                          [&] { (*device)->Fill(1, 1 << 20, memory->get()); });
  ASSERT_TRUE(spread.ok()) << spread.status();
  EXPECT_GT(spread->median, 0);
}

}  // namespace
}  // namespace keelson::bench
