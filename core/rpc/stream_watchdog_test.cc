#include "core/rpc/stream_watchdog.h"

#include "core/base/stop_signal.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

class StreamWatchdogTest : public testing::Test {
 protected:
  ManualClock clock_;
  StopSignal cancelled_;
  StreamWatchdog watchdog_{[this] { cancelled_.Raise(); }, &clock_};
};

TEST_F(StreamWatchdogTest, CancelsAnExchangeThatTakesTooLong) {
  EXPECT_FALSE(watchdog_.Await([this] {
    clock_.Advance(StreamWatchdog::kLimit);
    cancelled_.Wait();
    return false;
  }));
  EXPECT_TRUE(watchdog_.expired());
}

TEST_F(StreamWatchdogTest, ReturnsWhatTheExchangeReturns) {
  EXPECT_TRUE(watchdog_.Await([] { return true; }));
  EXPECT_FALSE(watchdog_.Await([] { return false; }));
  EXPECT_FALSE(watchdog_.expired());
}

TEST_F(StreamWatchdogTest, EachExchangeHasTheWholeTimeAndThatBetweenThemIsFree) {
  const absl::Duration almost = StreamWatchdog::kLimit - absl::Milliseconds(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(watchdog_.Await([&] {
      clock_.Advance(almost);
      return true;
    }));
    clock_.Advance(2 * StreamWatchdog::kLimit);
  }
  EXPECT_FALSE(watchdog_.expired());
  EXPECT_FALSE(cancelled_.raised());
}

}  // namespace
}  // namespace keelson
