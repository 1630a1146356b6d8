// What the chief and the evaluator write into the model directory is what the dashboard reads
// there.
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/coordination/coordinator.h"
#include "chief/reporting/reporter.h"
#include "chief/reporting/run_files.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/placement.h"
#include "core/device/factory/device_factory.h"
#include "core/model/spec/model_spec.h"
#include "dashboard/api/api.h"
#include "evaluator/evaluation_outputs.h"
#include "evaluator/snapshot_scorer.h"
#include "gmock/gmock.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

constexpr Task kWorker = {Role::kWorker, 0};
constexpr MembershipId kWorkerId = {0x1234567890abcdef, 0xfedcba0987654321};
constexpr int64_t kSteps = 20;

class DashboardFilesTest : public testing::Test {
 protected:
  DashboardFilesTest() : spec_(*InferModelSpec(config_.model())) {
    ServerView server;
    server.address = "host:2222";
    v1::ShardStatus answer;
    answer.set_state(v1::ShardStatus::READY);
    answer.set_incarnation(0xb);
    answer.set_value_bytes(24);
    server.NoteAnswer(answer, clock_.Now());
    server.NoteReady(clock_.Now());
    servers_ = {server};
  }

  // The chief's part of a job of 20 steps of 10 examples by one worker, in a minute.
  void Train() {
    const Placement placement = Placement::Compute(spec_.variables, 1);
    ASSERT_TRUE(WriteRunFiles(config_, placement, servers_, FileSystem::Real()).ok());
    CreateReporter();
    v1::JobState state;
    state.set_num_records(1000);
    WorkOptions work;
    work.max_steps = 2 * kSteps;
    work.num_records = 1000;
    work.batch_size = 10;
    coordinator_.start()->StartTraining({}, *WorkLedger::FromState(state, work));
    ASSERT_TRUE(coordinator_.members()
                    ->Register(kWorker, kWorkerId, 0, "host:7", {}, "cpu, 1 thread")
                    .ok());
    for (int64_t step = 0; step < kSteps; ++step) {
      ASSERT_NO_FATAL_FAILURE(DoStep());
      clock_.Advance(absl::Seconds(3));
      reporter_->Update();
    }
    reporter_->Finish();
  }

  void CreateReporter() {
    Reporter::Options options = {model_dir_, [](int64_t) { return 0.5; }};
    options.servers = [this] { return servers_; };
    options.chief.task = {Role::kChief, 0};
    options.chief.peer = "host:5";
    options.batches_per_epoch = 100;
    reporter_ = Reporter::Create(std::move(options), &clock_, coordinator_.reports());
  }

  void DoStep() {
    const auto lease =
        coordinator_.requests()->AcquireWork(kWorker, kWorkerId, {}, absl::ZeroDuration());
    ASSERT_TRUE(lease.ok() && lease->has_value());
    ASSERT_EQ((*lease)->tickets.size(), 1u);
    WorkerReport report;
    report.leases = {{(*lease)->id, 1}};
    report.losses = {{(*lease)->tickets[0].step, 0.25}};
    report.figures.set_steps(1);
    report.figures.set_examples(10);
    report.figures.set_loss_sum(0.25);
    report.figures.set_staleness_sum(2);
    report.figures.set_staleness_max(2);
    for (const int64_t count : {0, 0, 1}) report.figures.add_staleness_counts(count);
    report.figures.set_compute_seconds(1);
    report.figures.set_push_seconds(0.5);
    report.figures.set_bytes_pushed(3000);
    ASSERT_TRUE(coordinator_.members()->Heartbeat(kWorker, kWorkerId, report).ok());
  }

  // The evaluator's part.
  void Evaluate(int64_t step, float scale) {
    CommitTinySnapshot(&directory_, step, scale);
    const auto device = CreateDevice("cpu", {.threads = 1});
    ASSERT_TRUE(device.ok()) << device.status();
    const TinyDataset records = FiveRecords();
    auto scorer = SnapshotScorer::Create(config_, device->get(), &records, &clock_, &stop_);
    ASSERT_TRUE(scorer.ok()) << scorer.status();
    const SnapshotInfo snapshot = directory_.List()->back();
    const auto scored = (*scorer)->Score(snapshot);
    ASSERT_TRUE(scored.ok()) << scored.status();
    EvaluationOutputs::Options options;
    options.self = {Role::kEvaluator, 0};
    options.config = config_;
    options.variables = spec_.variables;
    auto outputs = EvaluationOutputs::Open(std::move(options), &directory_, &clock_);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const absl::Status published = (*outputs)->Publish(snapshot, *scored, {});
    ASSERT_TRUE(published.ok()) << published;
  }

  // Gets JSON of the run from a dashboard that is started now.
  Json Get(const std::string& target) {
    RunSet::Options options;
    options.model_dir = model_dir_;
    options.clock = &clock_;
    const auto runs = RunSet::Create(std::move(options));
    EXPECT_TRUE(runs.ok()) << runs.status();
    while ((*runs)->Poll()) {
    }
    DashboardApi::Options api;
    api.runs = runs->get();
    api.clock = &clock_;
    HttpRequest request;
    request.method = "GET";
    const std::string id = (*runs)->All().at(0)->id();
    const std::optional<HttpTarget> parsed = ParseTarget("/api/v1/runs/" + id + target);
    request.path = parsed->path;
    request.query = parsed->query;
    const HttpResponse response = DashboardApi(std::move(api)).Handle(request);
    EXPECT_EQ(response.status, 200) << target << ": " << response.body;
    return ParseJson(response.body).value_or(Json());
  }
  Json Task(const std::string& name) {
    const Json cluster = Get("/cluster");
    for (const Json& task : cluster["tasks"]) {
      if (task["task"] == name) return task;
    }
    ADD_FAILURE() << "no task " << name;
    return nullptr;
  }
  Json Last(const std::string& series) {
    const Json list = Get("/series");
    for (const Json& entry : list["series"]) {
      if (entry["name"] == series) return entry["last"];
    }
    ADD_FAILURE() << "no series " << series;
    return nullptr;
  }

  ManualClock clock_;
  StopSignal stop_;
  const std::string model_dir_ = FreshDirectory();
  const v1::TrainConfig config_ = TinyConfig(model_dir_);
  const ModelSpec spec_;
  CheckpointDirectory directory_{FileSystem::Real(), model_dir_, &clock_};
  Coordinator coordinator_{{0, absl::Seconds(1000), absl::Nanoseconds(1), 64, 10}, &clock_};
  std::vector<ServerView> servers_;
  std::unique_ptr<Reporter> reporter_;
};

TEST_F(DashboardFilesTest, TheChiefsStatus) {
  Train();
  const Json run = Get("");
  EXPECT_EQ(run["state"], "running");
  EXPECT_EQ(run["error"], "");
  EXPECT_EQ(run["step"], kSteps);
  EXPECT_EQ(run["max_steps"], 2 * kSteps);
  EXPECT_EQ(run["mode"], "async");
  EXPECT_EQ(run["loss"], 0.25);
  EXPECT_EQ(run["learning_rate"], 0.5);
  EXPECT_EQ(run["steps_per_epoch"], 100.0);
  EXPECT_NEAR(run["steps_per_second"].get<double>(), 1.0 / 3, 1e-6);
  EXPECT_NEAR(run["eta_seconds"].get<double>(), 60, 1e-3);
  EXPECT_EQ(run["updated"], 1.7e9 + 60);
  EXPECT_EQ(run["started"], 1.7e9);
  EXPECT_EQ(run["task"]["kind"], "classification");
  EXPECT_EQ(run["task"]["parameters"], 6);
}

TEST_F(DashboardFilesTest, NeitherFilesNorAnswersGiveAMembershipAway) {
  Train();
  std::string told = Get("").dump() + Get("/cluster").dump();
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(model_dir_)) {
    if (!entry.is_regular_file()) continue;
    const absl::StatusOr<std::string> content = ReadFile(entry.path());
    ASSERT_TRUE(content.ok()) << content.status();
    told += *content;
    ++files;
  }
  EXPECT_GT(files, 1);
  EXPECT_NE(told.find("cpu, 1 thread"), std::string::npos) << "of the member";
  for (const uint64_t half : {kWorkerId.incarnation, kWorkerId.secret}) {
    std::string bytes(sizeof(half), '\0');
    std::memcpy(bytes.data(), &half, sizeof(half));
    for (const std::string& form :
         {bytes, absl::StrCat(half), absl::StrCat(static_cast<int64_t>(half)),
          absl::StrCat(absl::Hex(half))}) {
      EXPECT_EQ(told.find(form), std::string::npos);
    }
  }
}

TEST_F(DashboardFilesTest, TheChiefsTasks) {
  Train();
  EXPECT_EQ(Task("chief-0")["state"], "alive");
  EXPECT_EQ(Task("chief-0")["peer"], "host:5");
  EXPECT_FALSE(Task("chief-0").contains("incarnation"));
  const Json server = Task("ps-0");
  EXPECT_EQ(server["state"], "alive");
  EXPECT_EQ(server["address"], "host:2222");
  EXPECT_EQ(server["value_bytes"], 24);
  EXPECT_EQ(server["since"], 1.7e9);
  const Json worker = Task("worker-0");
  EXPECT_EQ(worker["state"], "alive");
  EXPECT_EQ(worker["device"], "cpu, 1 thread");
  EXPECT_EQ(worker["steps"], kSteps);
  EXPECT_EQ(worker["examples"], 10 * kSteps);
  EXPECT_NEAR(worker["steps_per_second"].get<double>(), 1.0 / 3, 1e-6);
  EXPECT_EQ(worker["staleness"]["mean"], 2.0);
  EXPECT_EQ(worker["staleness"]["max"], 2);
  EXPECT_EQ(worker["staleness"]["counts"],
            Json({0, 0, static_cast<int>(kSteps), 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(worker["step_seconds"],
            Json({{"input", 0.0}, {"pull", 0.0}, {"compute", 1.0}, {"push", 0.5}}));
}

TEST_F(DashboardFilesTest, TheChiefsCurves) {
  Train();
  const Json loss = Last("train/loss");
  EXPECT_EQ(loss["step"], kSteps);
  EXPECT_EQ(loss["value"], 0.25);
  EXPECT_EQ(Last("train/learning_rate")["value"], 0.5);
  EXPECT_GT(Last("train/speed/steps_per_second")["value"], 0);
  EXPECT_NEAR(Last("task/worker-0/steps_per_second")["value"].get<double>(), 1.0 / 3, 1e-6);
  EXPECT_EQ(Last("task/worker-0/compute_seconds")["value"], 1.0);
  EXPECT_EQ(Last("task/worker-0/pushed_bytes_per_second")["value"], 1000.0);
}

TEST_F(DashboardFilesTest, TheChiefsRunFiles) {
  Train();
  const Json placement = Get("/placement");
  EXPECT_EQ(placement["shards"], Json({{{"task", "ps-0"}, {"bytes", 24}}}));
  std::vector<std::string> variables;
  for (const Json& variable : placement["variables"]) variables.push_back(variable["name"]);
  EXPECT_THAT(variables, testing::UnorderedElementsAre("scores/bias", "scores/kernel"));
  EXPECT_EQ(placement["variables"][1]["partitions"],
            Json({{{"shard", 0}, {"row_begin", 0}, {"row_end", 2}, {"bytes", 16}}}));
  EXPECT_EQ(Get("/model")["layers"][0]["name"], "scores");
}

TEST_F(DashboardFilesTest, TheEvaluatorsFiles) {
  Evaluate(10, 1);
  clock_.Advance(absl::Seconds(5));
  Evaluate(20, -1);
  const Json list = Get("/snapshots")["snapshots"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["step"], 20);
  EXPECT_EQ(list[0]["exists"], true);
  EXPECT_EQ(list[0]["examples"], 5);
  EXPECT_DOUBLE_EQ(list[0]["metrics"]["accuracy"].get<double>(), 0.2);
  EXPECT_EQ(list[0]["evaluated"], 1.7e9 + 5);
  EXPECT_DOUBLE_EQ(list[1]["metrics"]["accuracy"].get<double>(), 0.8);
  EXPECT_EQ(list[1]["best"], Json({"accuracy", "loss"}));
  EXPECT_DOUBLE_EQ(Last("eval/accuracy")["value"].get<double>(), 0.2);
  const Json report = Get("/report?step=20");
  EXPECT_EQ(report["steps"], Json({10, 20}));
  EXPECT_EQ(report["kind"], "classification");
  EXPECT_EQ(report["examples"], 5);
  EXPECT_EQ(report["confusion"], Json({{0, 4}, {0, 1}}));
  EXPECT_EQ(report["wrong"].size(), 4u);
  const Json compared = Get("/snapshots/compare?a=10&b=20");
  EXPECT_EQ(compared["variables"][0]["name"], "scores/kernel");
  EXPECT_EQ(compared["variables"][0]["max_change"], 2.0);
}

TEST_F(DashboardFilesTest, AFinishedJobIsShownFromItsFilesAlone) {
  Train();
  Evaluate(kSteps, 1);
  ASSERT_TRUE(directory_.WriteDoneMarker(kSteps, 0).ok());
  clock_.Advance(absl::Hours(1000));
  const Json run = Get("");
  EXPECT_EQ(run["state"], "done");
  EXPECT_EQ(run["step"], kSteps);
  EXPECT_EQ(run["best"]["metric"], "accuracy");
  EXPECT_EQ(Task("worker-0")["state"], "left");
  EXPECT_EQ(Last("train/loss")["step"], kSteps);
}

}  // namespace
}  // namespace keelson
