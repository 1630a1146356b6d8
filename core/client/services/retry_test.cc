#include "core/client/services/retry.h"

#include <string>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class RetryTest : public testing::Test {
 protected:
  absl::Status Call(absl::FunctionRef<absl::Status()> call) {
    RetryOptions options;
    options.give_up_after = absl::Minutes(10);
    options.first_pause = absl::Microseconds(1);
    options.longest_pause = absl::Microseconds(1);
    return CallWithRetries(options, "waiting for ps-1", &clock_, &stop_, call);
  }

  ManualClock clock_;
  StopSignal stop_;
  int calls_ = 0;
};

TEST_F(RetryTest, SuccessIsReturnedAtOnce) {
  EXPECT_TRUE(Call([&] {
                ++calls_;
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(calls_, 1);
}

TEST_F(RetryTest, OtherErrorsAreFinal) {
  for (const auto& error :
       {absl::InvalidArgumentError("bad block"), absl::AbortedError("other placement"),
        absl::InternalError("malformed"), absl::CancelledError("stopped")}) {
    calls_ = 0;
    EXPECT_EQ(Call([&] {
                ++calls_;
                return error;
              }),
              error);
    EXPECT_EQ(calls_, 1);
  }
}

TEST_F(RetryTest, RepeatsWhileThePeerIsAway) {
  EXPECT_TRUE(Call([&] {
                ++calls_;
                if (calls_ == 1) return absl::UnavailableError("connection refused");
                if (calls_ == 2) return absl::DeadlineExceededError("no answer");
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(calls_, 3);
}

TEST_F(RetryTest, GivesUpWhenItsPatienceIsOver) {
  const absl::Status status = Call([&] {
    ++calls_;
    clock_.Advance(absl::Minutes(4));
    return absl::UnavailableError("connection refused");
  });
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("waiting for ps-1 for 12m"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"));
}

TEST_F(RetryTest, PatienceCountsFromTheFirstCallOfEachTime) {
  clock_.Advance(absl::Hours(1));
  EXPECT_TRUE(
      Call([&] { return ++calls_ == 1 ? absl::UnavailableError("away") : absl::OkStatus(); }).ok());
}

TEST_F(RetryTest, StopEndsTheWaiting) {
  const absl::Status status = Call([&] {
    if (++calls_ == 3) stop_.Raise();
    return absl::UnavailableError("connection refused");
  });
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("waiting for ps-1"));
}

TEST_F(RetryTest, StopRaisedBeforeMeansNoCall) {
  stop_.Raise();
  EXPECT_EQ(Call([&] {
              ++calls_;
              return absl::OkStatus();
            }).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(calls_, 0);
}

TEST_F(RetryTest, StopWakesALongPause) {
  RetryOptions options;
  options.first_pause = options.longest_pause = absl::Hours(1);
  const absl::Status status = CallWithRetries(options, "waiting for ps-1", &clock_, &stop_, [&] {
    stop_.Raise();
    return absl::UnavailableError("connection refused");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(RetryTest, WarnsNowAndThenWhileItWaits) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Call([&] {
                if (++calls_ == 5) return absl::OkStatus();
                clock_.Advance(absl::Seconds(20));
                return absl::UnavailableError("connection refused");
              }).ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("waiting for ps-1 for 40s: connection refused"));
  EXPECT_THAT(log, HasSubstr("waiting for ps-1 for 1m20s: connection refused"));
  EXPECT_THAT(log, testing::Not(HasSubstr("for 20s")));
  EXPECT_THAT(log, testing::Not(HasSubstr("for 1m:")));
}

TEST(NextPauseTest, APauseIsAboutATenthOfTheTimeWaited) {
  const RetryOptions options;
  absl::Duration pause = options.first_pause;
  absl::Duration waited;
  while (waited < absl::Seconds(9)) {
    waited += pause;
    pause = NextPause(options, pause);
    EXPECT_LE(pause, options.first_pause + 0.101 * waited);
    EXPECT_GE(pause, 0.099 * waited);
  }
}

TEST(NextPauseTest, NoPauseIsLongerThanTheLongest) {
  RetryOptions options;
  options.longest_pause = absl::Seconds(1);
  EXPECT_EQ(NextPause(options, absl::Milliseconds(999)), absl::Seconds(1));
  EXPECT_EQ(NextPause(options, absl::Seconds(1)), absl::Seconds(1));
}

TEST(IsTransientTest, OnlyWhatMayPass) {
  for (int code = 0; code <= 16; ++code) {
    const auto c = static_cast<absl::StatusCode>(code);
    EXPECT_EQ(IsTransient(absl::Status(c, "")),
              c == absl::StatusCode::kUnavailable || c == absl::StatusCode::kDeadlineExceeded);
  }
}

}  // namespace
}  // namespace keelson
