// What a job's programs tell those who watch it: metrics, probes, health, the dashboard.
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/status_macros.h"
#include "core/http/http_testing.h"
#include "core/metrics/exposition_testing.h"
#include "core/rpc/channel.h"
#include "core/startup/metrics_endpoint.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

// The port that a program has logged for its metrics, or for another page.
int PortOf(Job* job, const Task& task, const std::string& page = "metrics") {
  const std::string text = page + " on port ";
  job->WaitForLog(task, text);
  const std::string log = job->Log(task);
  const size_t begin = log.find(text) + text.size();
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(log.substr(begin, log.find('\n', begin) - begin), &port));
  return port;
}

// docs/metrics.md has the metric's name.
void ExpectDocumented(const std::string& name) {
  const char* const root = std::getenv("KEELSON_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(root, "docs/metrics.md"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, ::testing::HasSubstr(absl::StrCat("`", name, "`")));
}

std::map<std::string, double> ScrapeTask(Job* job, const Task& task) {
  const absl::StatusOr<HttpAnswer> response = AskHttp(PortOf(job, task), "GET", "/metrics");
  EXPECT_TRUE(response.ok()) << response.status();
  const absl::StatusOr<Exposition> page = ParseExposition(response->body);
  EXPECT_TRUE(page.ok()) << task.ToString() << ": " << page.status();
  for (const auto& [name, type] : page->types) ExpectDocumented(name);
  return page->samples;
}

// What the task's gRPC health service says of `service`.
grpc::health::v1::HealthCheckResponse::ServingStatus HealthOf(const Job& job, const Task& task,
                                                              const std::string& service = "") {
  const auto stub = grpc::health::v1::Health::NewStub(
      CreateChannel(job.Address(task), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  EXPECT_TRUE(status.ok()) << task.ToString() << ": " << status.error_message();
  return response.status();
}

TEST(MetricsTest, EveryTaskOfAJobTellsItsOwn) {
  Job job({.ps = 1, .workers = 1}, JobConfig(kEndless));
  job.AddFlag("--metrics_port=0");
  job.StartAll();
  job.WaitForStep(kChiefTask, 50);
  // The first evaluation counts by the time that the second one is logged.
  job.WaitForLog(kEvaluatorTask, " examples in ", 2);
  for (const Task& task : {kChiefTask, PsTask(0), WorkerTask(0), kEvaluatorTask}) {
    const int port = PortOf(&job, task);
    for (const char* path : {"/healthz", "/readyz"}) {
      const absl::StatusOr<HttpAnswer> response = AskHttp(port, "GET", path);
      ASSERT_TRUE(response.ok()) << response.status();
      EXPECT_EQ(response->status, 200) << task.ToString() << path;
    }
    EXPECT_EQ(HealthOf(job, task), grpc::health::v1::HealthCheckResponse::SERVING);
    EXPECT_GT(ScrapeTask(&job, task).at("process_resident_memory_bytes"), 0);
  }
  EXPECT_EQ(HealthOf(job, PsTask(0), "keelson.v1.ParameterService"),
            grpc::health::v1::HealthCheckResponse::SERVING);
  EXPECT_EQ(HealthOf(job, kChiefTask, "keelson.v1.ChiefService"),
            grpc::health::v1::HealthCheckResponse::SERVING);
  // The worker's heartbeat with its steps may come later than the server's.
  std::map<std::string, double> chief;
  EXPECT_TRUE(WaitUntil(
      [&] {
        chief = ScrapeTask(&job, kChiefTask);
        return chief.at("keelson_chief_worker_steps_total{task=\"worker-0\"}") >= 50;
      },
      absl::Seconds(20)));
  EXPECT_GE(chief.at("keelson_chief_global_step"), 50);
  EXPECT_EQ(chief.at("keelson_chief_phase{phase=\"training\"}"), 1);
  EXPECT_EQ(chief.at("keelson_chief_mode{mode=\"async\"}"), 1);
  EXPECT_EQ(chief.at("keelson_chief_members{role=\"worker\",state=\"alive\"}"), 1);
  EXPECT_GE(chief.at("keelson_chief_snapshot_step"), 0);
  EXPECT_EQ(chief.at("keelson_chief_snapshot_interval_steps"), 100);
  const std::map<std::string, double> server = ScrapeTask(&job, PsTask(0));
  EXPECT_EQ(server.at("keelson_ps_shard_ready"), 1);
  EXPECT_GE(server.at("keelson_ps_shard_step"), 50);
  EXPECT_GE(server.at("keelson_ps_pushes_total"), 50);
  EXPECT_GE(server.at("keelson_ps_staleness_bucket{task=\"worker-0\",le=\"+Inf\"}"), 50);
  EXPECT_GE(server.at("keelson_ps_snapshots_total"), 1);
  const std::map<std::string, double> worker = ScrapeTask(&job, WorkerTask(0));
  EXPECT_GE(worker.at("keelson_worker_steps_total"), 50);
  EXPECT_GT(worker.at("keelson_worker_step_seconds_total{kind=\"compute\"}"), 0);
  const std::map<std::string, double> evaluator = ScrapeTask(&job, kEvaluatorTask);
  EXPECT_GE(evaluator.at("keelson_evaluator_evaluations_total"), 1);
  EXPECT_GE(evaluator.at("keelson_evaluator_evaluated_step"), 0);
  EXPECT_GT(evaluator.at("keelson_evaluator_evaluation{metric=\"loss\"}"), 0);
}

// The answer of the evaluator's dashboard; null: none, or another status than 200.
nlohmann::json AskDashboard(int port, const std::string& path) {
  const absl::StatusOr<HttpAnswer> response = AskHttp(port, "GET", path);
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok() || response->status != 200) return nullptr;
  return nlohmann::json::parse(response->body, nullptr, /*allow_exceptions=*/false);
}

// The newest snapshot that the dashboard shows as evaluated; -1: none.
int64_t LastEvaluationShown(int port) {
  const nlohmann::json answer = AskDashboard(port, "/api/v1/runs/model/snapshots");
  if (!answer.is_object()) return -1;
  for (const nlohmann::json& snapshot : answer.at("snapshots")) {
    if (snapshot.contains("evaluated")) return snapshot.at("step").get<int64_t>();
  }
  return -1;
}

TEST(MetricsTest, TheDashboardShowsTheLastEvaluation) {
  Job job({.ps = 1, .workers = 1}, JobConfig(kEndless));
  job.AddFlag(Role::kEvaluator, "--dashboard_port=0");
  job.StartAll();
  const int port = PortOf(&job, kEvaluatorTask, "dashboard");
  job.WaitForLog(kEvaluatorTask, " examples in ", 2);
  const int64_t last = ReadEvaluations(job.model_dir())->back().step;
  EXPECT_GT(last, 0);
  EXPECT_TRUE(WaitUntil([&] { return LastEvaluationShown(port) >= last; }, absl::Seconds(20)));
  for (const char* path : {"/metrics", "/healthz", "/readyz"}) {
    const absl::StatusOr<HttpAnswer> response = AskHttp(port, "GET", path);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200) << path;
  }
}

TEST(MetricsTest, APortInUseEndsTheProgram) {
  const Telemetry telemetry;
  const auto other = StartMetricsEndpoint({}, &telemetry);
  ASSERT_TRUE(other.ok()) << other.status();
  const ProgramRun run =
      RunProgram(Role::kChief, {"--model_dir=" + JoinPath(FreshDirectory(), "model"),
                                absl::StrCat("--metrics_port=", (*other)->port())});
  ExpectOneError(run, 2,
                 {absl::StrCat("--metrics_port: cannot listen on port ", (*other)->port()),
                  "Address already in use"});
}

TEST(MetricsTest, APortOutOfRangeIsAUsageError) {
  const ProgramRun run = RunProgram(Role::kChief, {"--metrics_port=65536"});
  ExpectOneError(run, 2, {"--metrics_port", "65536", "see --help"});
}

// A stranger's calls of the chief's health service, one after the other, on connections that it
// renews: a stranger may send half a megabyte before the chief closes one.
class HealthCalls {
 public:
  explicit HealthCalls(std::string address) : address_(std::move(address)) {}

  // How long a call takes, without connecting.
  absl::StatusOr<absl::Duration> Call() {
    if (calls_++ % kCallsOfAConnection == 0) {
      stub_ = grpc::health::v1::Health::NewStub(
          CreateChannel(address_, grpc::InsecureChannelCredentials()));
      RETURN_IF_ERROR(Check());
    }
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(Check());
    return absl::Now() - begin;
  }

 private:
  static constexpr int kCallsOfAConnection = 1000;

  absl::Status Check() {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    const grpc::Status status = stub_->Check(&context, {}, &response);
    return status.ok() ? absl::OkStatus() : absl::UnavailableError(status.error_message());
  }

  const std::string address_;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  int calls_ = 0;
};

// gRPC's own threads for calls that wait sleep for 100 ms at a time when none of these has been
// answered for a second. On a busy machine a pause may have other reasons, which an evaluator has
// as often: it has no such threads.
TEST(HealthTest, AChiefWithoutWorkersAnswersWithoutPauses) {
  constexpr int kWindows = 40, kInARow = 4;
  Job job({.ps = 1, .workers = 1}, JobConfig(100));
  job.Start(kChiefTask);
  job.Start(kEvaluatorTask);
  job.WaitForLog(kChiefTask, "waiting for 1 parameter server");
  job.WaitForLog(kEvaluatorTask, "health service on port ");
  HealthCalls chief(job.Address(kChiefTask));
  HealthCalls evaluator(job.Address(kEvaluatorTask));
  const auto pauses = [](HealthCalls* calls) {
    const absl::StatusOr<absl::Duration> time = calls->Call();
    EXPECT_TRUE(time.ok()) << time.status();
    return time.value_or(absl::InfiniteDuration()) > absl::Milliseconds(60);
  };
  int without_pause = 0;
  int of_chief_alone = 0;
  for (int window = 0; window < kWindows && without_pause < kInARow && !HasFailure(); ++window) {
    bool chief_paused = false, evaluator_paused = false;
    for (const absl::Time end = absl::Now() + absl::Milliseconds(1300); absl::Now() < end;) {
      if (pauses(&chief)) chief_paused = true;
      if (pauses(&evaluator)) evaluator_paused = true;
    }
    without_pause = chief_paused ? 0 : without_pause + 1;
    if (chief_paused && !evaluator_paused) ++of_chief_alone;
  }
  // With those threads alone to answer it had 24 of 40, beside builds a chief had 2 of 24.
  EXPECT_LE(of_chief_alone, 15);
}

}  // namespace
}  // namespace keelson
