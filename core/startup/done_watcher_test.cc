#include "core/startup/done_watcher.h"

#include <stdlib.h>

#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/done_marker.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(1);

class DoneWatcherTest : public testing::Test {
 protected:
  DoneWatcherTest() {
    context_.config.mutable_checkpoint()->set_model_dir(FreshDirectory());
    context_.config.mutable_train()->set_max_steps(100);
    context_.config_hash = 7;
  }

  void WriteMarker(int64_t step, uint64_t config_hash) {
    const absl::Status written = WriteDoneMarker(
        FileSystem::Real(), context_.config.checkpoint().model_dir(), {step, config_hash});
    EXPECT_TRUE(written.ok()) << written;
  }

  RoleContext context_;
};

TEST_F(DoneWatcherTest, JobWithoutMarkerIsNotDone) {
  EXPECT_EQ(*DoneStepOf(context_), std::nullopt);
  context_.config.mutable_checkpoint()->clear_model_dir();
  EXPECT_EQ(*DoneStepOf(context_), std::nullopt);
}

TEST_F(DoneWatcherTest, MarkerOfTheSameConfiguration) {
  WriteMarker(40, 7);
  EXPECT_EQ(*DoneStepOf(context_), 40);
}

TEST_F(DoneWatcherTest, MarkerOfAnotherConfigurationCountsFromMaxSteps) {
  WriteMarker(99, 8);
  EXPECT_EQ(*DoneStepOf(context_), std::nullopt);
  WriteMarker(100, 8);
  EXPECT_EQ(*DoneStepOf(context_), 100);
  context_.config.mutable_train()->clear_max_steps();
  EXPECT_EQ(*DoneStepOf(context_), std::nullopt);
}

TEST_F(DoneWatcherTest, RaisesTheSignalOnceTheMarkerStays) {
  StopSignal stop;
  const DoneWatcher watcher(context_, &stop, kInterval);
  EXPECT_FALSE(watcher.done());
  WriteMarker(100, 7);
  stop.Wait();
  EXPECT_TRUE(watcher.done());
  EXPECT_TRUE(watcher.Explain(absl::CancelledError("")).ok());
  EXPECT_EQ(watcher.Explain(absl::InternalError("")).code(), absl::StatusCode::kInternal);
}

TEST_F(DoneWatcherTest, CancelledByAnotherStaysCancelled) {
  StopSignal stop;
  const DoneWatcher watcher(context_, &stop, kInterval);
  stop.Raise();
  EXPECT_EQ(watcher.Explain(absl::CancelledError("")).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace keelson
