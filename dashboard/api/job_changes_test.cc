#include "dashboard/api/job_changes.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RecordedActions : public JobActions {
 public:
  absl::Status EndTraining(absl::string_view reason) override {
    calls.push_back(absl::StrCat("end: ", reason));
    return status;
  }
  absl::Status SetMode(absl::string_view mode) override {
    calls.push_back(absl::StrCat("mode: ", mode));
    return status;
  }

  std::vector<std::string> calls;
  absl::Status status;
};

class ActionsTest : public DashboardApiTest {
 protected:
  ActionsTest() {
    api_options_.token = kToken;
    api_options_.actions = &actions_;
  }
  HttpResponse Post(const std::string& action, const std::string& body,
                    const std::string& authorization = absl::StrCat("Bearer ", kToken)) {
    return Ask("POST", absl::StrCat("/api/v1/runs/mnist/actions/", action), body, authorization);
  }

  RecordedActions actions_;
};

TEST_F(ActionsTest, TheJobsTokenChangesTheJob) {
  EXPECT_EQ(Get("/runs")["read_only"], false);
  EXPECT_EQ(Post("end_training", R"({"reason": "good enough"})").status, 202);
  EXPECT_EQ(Post("set_mode", R"({"mode": "ssp:4"})").status, 202);
  EXPECT_THAT(actions_.calls, ElementsAre("end: good enough", "mode: ssp:4"));
}

TEST_F(ActionsTest, WarnsOfAWrongTokenOnceAMinute) {
  const auto ask = [&] {
    testing::internal::CaptureStderr();
    EXPECT_EQ(Post("set_mode", R"({"mode": "async"})", "Bearer wrong").status, 401);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(ask(), testing::HasSubstr("asked for a change without the job's token"));
  EXPECT_EQ(ask(), "");
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(ask(), testing::HasSubstr("asked for a change without the job's token"));
}

TEST_F(ActionsTest, NothingChangesWithoutTheToken) {
  for (const char* authorization :
       {"", "Bearer", "Bearer ", "Bearer 0123456789abcdeF", "Bearer 0123456789abcde",
        "Bearer 0123456789abcdef0", "Basic 0123456789abcdef", "0123456789abcdef",
        "bearer 0123456789abcdef"}) {
    const HttpResponse response = Post("end_training", R"({"reason": "a"})", authorization);
    EXPECT_EQ(Error(401, response), "expected the job's token: Authorization: Bearer TOKEN");
    EXPECT_THAT(response.headers, ElementsAre(testing::Pair("WWW-Authenticate", "Bearer")));
  }
  // Nor is a token taken from elsewhere.
  EXPECT_EQ(Ask("POST", absl::StrCat("/api/v1/runs/mnist/actions/set_mode?token=", kToken),
                absl::StrCat(R"({"mode": "async", "token": ")", kToken, "\"}"))
                .status,
            401);
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, ReadOnlyByDefault) {
  api_options_.token.clear();
  EXPECT_EQ(Get("/runs")["read_only"], true);
  EXPECT_EQ(Error(403, Post("end_training", R"({"reason": "a"})")),
            "read-only: the evaluator was started without --auth_token_file");
  EXPECT_EQ(Post("set_mode", R"({"mode": "async"})", "Bearer ").status, 403);
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, OnlyTheOwnRun) {
  run_options_.runs = {"/old"};
  RunFiles(&memory_, "/old").Write("DONE", "{}");
  const HttpResponse response = Ask("POST", "/api/v1/runs/old/actions/set_mode",
                                    R"({"mode": "async"})", absl::StrCat("Bearer ", kToken));
  EXPECT_EQ(Error(409, response), "this is not the job of the evaluator, or that has no chief");
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, NotWithoutAChief) {
  api_options_.actions = nullptr;
  EXPECT_EQ(Get("/runs")["read_only"], true);
  Error(409, Post("set_mode", R"({"mode": "async"})"));
}

TEST_F(ActionsTest, BodiesThatMakeNoSense) {
  const std::string long_reason(201, 'a');
  for (const std::string& body :
       {std::string("{}"), std::string(R"({"reason": 1})"), std::string(R"({"reason": ""})"),
        std::string(R"({"reason": "a\nb"})"),
        absl::StrCat(R"({"reason": ")", long_reason, "\"}")}) {
    EXPECT_EQ(Error(400, Post("end_training", body)), "reason: expected a line of 1 to 200 bytes");
  }
  EXPECT_EQ(Error(400, Post("end_training", "[]")), "body: expected an object of JSON");
  EXPECT_EQ(Error(400, Post("set_mode", "{")), "body: expected an object of JSON");
  EXPECT_EQ(Error(400, Post("set_mode", "{}")), "mode: expected async, ssp:N, sync:N or sync:N/M");
  // Another page's form cannot say that it is JSON.
  EXPECT_EQ(Error(400, Post("set_mode", "")), "Content-Type: expected application/json, found ''");
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, WhatTheChiefAnswers) {
  const std::pair<absl::Status, int> answers[] = {
      {absl::InvalidArgumentError("bad"), 400},  {absl::FailedPreconditionError("bad"), 409},
      {absl::PermissionDeniedError("bad"), 403}, {absl::UnauthenticatedError("bad"), 401},
      {absl::UnavailableError("bad"), 503},      {absl::DeadlineExceededError("bad"), 503},
      {absl::UnimplementedError("bad"), 409}};
  for (const auto& [status, expected] : answers) {
    actions_.status = status;
    EXPECT_EQ(Error(expected, Post("set_mode", R"({"mode": "async"})")), "bad");
  }
}

}  // namespace
}  // namespace keelson
