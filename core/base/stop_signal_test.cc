#include "core/base/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "core/base/exit_code.h"
#include "core/base/log.h"
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

// Runs in a process of its own, which the watcher must end: its main thread never does.
[[noreturn]] void HangAfterSigterm(const std::function<void()>& last_word) {
  StopSignal stop;
  SignalWatcher watcher(&stop, {absl::Milliseconds(1), last_word});
  kill(getpid(), SIGTERM);
  StopSignal never;
  while (true) never.Wait();
}

TEST(SignalWatcherDeathTest, EndsAProcessThatDoesNotEndItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(HangAfterSigterm([] { LogError("fsync hangs"); }),
              testing::ExitedWithCode(kExitStopped), "stopping(.|\n)*fsync hangs");
}

TEST(SignalWatcherDeathTest, ALastWordThatHangsIsNotWaitedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(HangAfterSigterm([] { StopSignal().Wait(); }), testing::ExitedWithCode(kExitStopped),
              "stopping");
}

}  // namespace
}  // namespace keelson
