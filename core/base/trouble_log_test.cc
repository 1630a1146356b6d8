#include "core/base/trouble_log.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class TroubleLogTest : public testing::Test {
 protected:
  ManualClock clock_;
  TroubleLog log_{"status.json", &clock_, absl::Seconds(60)};
  const absl::Status full_ = absl::ResourceExhaustedError("cannot write x1: no space");
};

TEST_F(TroubleLogTest, NothingIsSaidOfSuccess) {
  EXPECT_FALSE(log_.Note(absl::OkStatus()));
  EXPECT_FALSE(log_.Note(absl::OkStatus()));
}

TEST_F(TroubleLogTest, ATroubleIsSaidOncePerInterval) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(log_.Note(full_));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("status.json: cannot write x1: no space"));
  clock_.Advance(absl::Seconds(59));
  EXPECT_FALSE(log_.Note(absl::ResourceExhaustedError("cannot write x2: no space")));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(log_.Note(full_));
  EXPECT_FALSE(log_.Note(full_));
}

TEST_F(TroubleLogTest, AnotherTroubleIsSaidAtOnce) {
  EXPECT_TRUE(log_.Note(full_));
  EXPECT_TRUE(log_.Note(absl::NotFoundError("no such directory")));
  EXPECT_FALSE(log_.Note(absl::NotFoundError("no such directory")));
}

TEST_F(TroubleLogTest, TheEndOfATroubleIsSaidOnce) {
  log_.Note(full_);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(log_.Note(absl::OkStatus()));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("status.json: works again"));
  EXPECT_FALSE(log_.Note(absl::OkStatus()));
  EXPECT_TRUE(log_.Note(full_)) << "a new trouble";
}

}  // namespace
}  // namespace keelson
