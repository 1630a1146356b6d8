#include "dashboard/job_dashboard.h"

#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/fresh_directory_testing.h"
#include "core/http/http_testing.h"
#include "gmock/gmock.h"
#include "testing/services/faulty_chief_service.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";

class JobDashboardTest : public testing::Test {
 protected:
  JobDashboardTest() {
    context_.self = {Role::kEvaluator, 0};
    context_.config = TinyConfig(FreshDirectory());
    flags_.port = 0;
  }

  static nlohmann::json Get(int port, const std::string& target) {
    const absl::StatusOr<HttpAnswer> answer = AskHttp(port, "GET", target);
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 200) << target;
    return nlohmann::json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  }
  static int EndTraining(int port, const std::string& run, const std::string& token) {
    const absl::StatusOr<HttpAnswer> answer = AskHttp(
        port, "POST", "/api/v1/runs/" + run + "/actions/end_training",
        absl::StrCat("Content-Type: application/json\r\nAuthorization: Bearer ", token, "\r\n"),
        "{\"reason\":\"good enough\"}");
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer->status;
  }

  RoleContext context_;
  DashboardFlags flags_;
  FaultyChiefService chief_;
};

TEST_F(JobDashboardTest, WithoutAPortThereIsNone) {
  flags_.port.reset();
  const auto job = StartJobDashboard(context_, flags_, kToken, {}, &chief_);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->dashboard, nullptr);
}

TEST_F(JobDashboardTest, ShowsTheJobAndFurtherRuns) {
  flags_.runs = {"before=" + FreshDirectory()};
  const auto job = StartJobDashboard(context_, flags_, "", {}, &chief_);
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (!job->dashboard->loaded() && absl::Now() < limit) std::this_thread::yield();
  ASSERT_TRUE(job->dashboard->loaded());
  const nlohmann::json runs = Get(job->dashboard->port(), "/api/v1/runs");
  ASSERT_TRUE(runs.is_object());
  EXPECT_EQ(runs.at("read_only"), true);
  ASSERT_GE(runs.at("runs").size(), 1u);
  const nlohmann::json& own = runs.at("runs").at(0);
  EXPECT_EQ(own.at("live"), true);
  EXPECT_EQ(own.at("model_dir"), context_.config.checkpoint().model_dir());
  // From this process, for the chief has not written any file yet.
  const nlohmann::json run =
      Get(job->dashboard->port(), "/api/v1/runs/" + own.at("id").get<std::string>());
  EXPECT_EQ(run.at("task").at("kind"), "classification");
}

TEST_F(JobDashboardTest, TheTokenLetsOthersEndTheTraining) {
  const auto job = StartJobDashboard(context_, flags_, kToken, {}, &chief_);
  ASSERT_TRUE(job.ok()) << job.status();
  const int port = job->dashboard->port();
  const std::string run = Get(port, "/api/v1/runs").at("runs").at(0).at("id");
  EXPECT_EQ(EndTraining(port, run, "fedcba9876543210"), 401);
  EXPECT_EQ(chief_.Count(&ChiefService::EndTraining), 0);
  EXPECT_EQ(EndTraining(port, run, kToken), 202);
  ASSERT_EQ(chief_.Count(&ChiefService::EndTraining), 1);
  EXPECT_EQ(chief_.Requests(&ChiefService::EndTraining)[0].reason(), "good enough");
}

TEST_F(JobDashboardTest, WithoutATokenNothingCanBeChanged) {
  const auto job = StartJobDashboard(context_, flags_, "", {}, &chief_);
  ASSERT_TRUE(job.ok()) << job.status();
  const int port = job->dashboard->port();
  const std::string run = Get(port, "/api/v1/runs").at("runs").at(0).at("id");
  EXPECT_EQ(EndTraining(port, run, kToken), 403);
  EXPECT_EQ(chief_.Count(&ChiefService::EndTraining), 0);
}

TEST_F(JobDashboardTest, NamesTheRunByTheJob) {
  context_.config.mutable_checkpoint()->set_model_dir(FreshDirectory() + "/model");
  context_.cluster.self = context_.self;
  context_.cluster.evaluators = {{0, "mnist-evaluator-0.kubeflow.svc:2222"}};
  const auto job = StartJobDashboard(context_, flags_, "", {}, &chief_);
  ASSERT_TRUE(job.ok()) << job.status();
  const nlohmann::json own = Get(job->dashboard->port(), "/api/v1/runs").at("runs").at(0);
  EXPECT_EQ(own.at("id"), "model");
  EXPECT_EQ(own.at("name"), "mnist");
}

TEST_F(JobDashboardTest, AnswersToTheTasksNameInTheCluster) {
  context_.cluster.self = context_.self;
  context_.cluster.evaluators[0] = "mnist-evaluator-0.mnist:2222";
  flags_.hosts = {"mnist.example.com"};
  const auto job = StartJobDashboard(context_, flags_, "", {}, &chief_);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto status_for = [&](const std::string& host) {
    const absl::StatusOr<HttpConnection> client = HttpConnection::To(job->dashboard->port());
    EXPECT_TRUE(client.ok()) << client.status();
    client->Send(absl::StrCat("GET /healthz HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
    return ParseHttpAnswer(client->ReceiveAll())->status;
  };
  EXPECT_EQ(status_for("mnist-evaluator-0.mnist:6006"), 200);
  EXPECT_EQ(status_for("mnist.example.com"), 200);
  EXPECT_EQ(status_for("evil.example"), 403);
}

TEST_F(JobDashboardTest, ServesUntilItIsStopped) {
  StopSignal stop;
  testing::internal::CaptureStderr();
  absl::Status status = absl::UnknownError("not ended");
  std::thread server([&] { status = ServeRuns(context_, flags_, {}, &stop); });
  while (!context_.telemetry->ready) std::this_thread::yield();
  stop.Raise();
  server.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("dashboard on port "));
}

TEST_F(JobDashboardTest, NothingToServeIsAnError) {
  context_.config.mutable_checkpoint()->clear_model_dir();
  const StopSignal stop;
  const absl::Status status = ServeRuns(context_, flags_, {}, &stop);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "--serve_only: expected --model_dir or --runs, found neither");
}

TEST_F(JobDashboardTest, ADirectoryThatIsNotThereIsAnError) {
  const StopSignal stop;
  flags_.runs = {"a=/no/such/run"};
  const absl::Status status = ServeRuns(context_, flags_, {}, &stop);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/run"));
}

}  // namespace
}  // namespace keelson
