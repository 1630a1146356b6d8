#include "core/base/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(StopSignalTest, WaitForTimesOutWhenNotRaised) {
  StopSignal stop;
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(1)));
  EXPECT_FALSE(stop.raised());
}

TEST(StopSignalTest, RaiseWakesAWaiter) {
  StopSignal stop;
  std::thread waiter([&stop] { stop.Wait(); });
  stop.Raise();
  waiter.join();
  EXPECT_TRUE(stop.WaitFor(absl::InfiniteDuration()));
}

TEST(StopSignalTest, ChildFollowsParentButNotTheOtherWay) {
  StopSignal parent;
  {
    StopSignal child(&parent);
    child.Raise();
    EXPECT_TRUE(child.raised());
    EXPECT_FALSE(parent.raised());
  }
  StopSignal child(&parent);
  parent.Raise();
  EXPECT_TRUE(child.raised());
  StopSignal late(&parent);
  EXPECT_TRUE(late.raised());
}

TEST(StopCallbackTest, IsCalledOnceWhenTheSignalIsRaised) {
  StopSignal parent;
  StopSignal stop(&parent);
  int calls = 0;
  {
    const StopCallback gone(&stop, [&] { calls += 100; });
    const StopCallback never(nullptr, [&] { calls += 100; });
  }
  const StopCallback callback(&stop, [&] {
    EXPECT_TRUE(stop.raised());
    ++calls;
  });
  EXPECT_EQ(calls, 0);
  parent.Raise();
  stop.Raise();
  EXPECT_EQ(calls, 1);
  const StopCallback late(&stop, [&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(SignalWatcherTest, SigtermRaises) {
  StopSignal stop;
  SignalWatcher watcher(&stop);
  kill(getpid(), SIGTERM);
  stop.Wait();
  EXPECT_TRUE(stop.raised());
}

}  // namespace
}  // namespace keelson
