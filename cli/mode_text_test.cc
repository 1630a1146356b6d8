#include "cli/mode_text.h"

#include "core/cluster/consistency.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ModeTextTest, IsTheModesName) {
  for (const char* mode : {"async", "ssp:4", "sync:2/3"}) {
    EXPECT_EQ(ModeText(ConsistencyMode::Parse(mode)->ToProto()), mode);
  }
}

TEST(ModeTextTest, TellsTheModeThatIsToCome) {
  v1::JobStatus status;
  EXPECT_EQ(ModeText(status), "async");
  *status.mutable_next_mode() = ConsistencyMode::Parse("sync:2")->ToProto();
  EXPECT_EQ(ModeText(status), "async, then sync:2");
}

TEST(ModeTextTest, AnUnknownModeIsTheProtosText) {
  v1::ConsistencyMode mode = ConsistencyMode::Parse("sync:2/3")->ToProto();
  mode.mutable_synchronous()->set_total_replicas(1);
  EXPECT_EQ(ModeText(mode), mode.ShortDebugString());
}

}  // namespace
}  // namespace keelson
