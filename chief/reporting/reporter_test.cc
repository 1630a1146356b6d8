#include "chief/reporting/reporter.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chief/coordination/coordinator.h"
#include "chief/coordination/member_ids_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/summary/event_handover.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr Task kSecondWorker = {Role::kWorker, 1};

class ReporterTest : public testing::Test {
 protected:
  void SetUp() override {
    Reporter::Options options = {directory_, [](int64_t) { return 0.5; },
                                 [this] { return missing_; }, [this] { return snapshots_; }};
    reporter_ = Reporter::Create(std::move(options), &clock_, coordinator_.reports());
  }
  void StartTraining(int64_t restored_step = 0) {
    v1::JobState state;
    state.set_global_step(restored_step);
    state.set_num_records(1000);
    WorkOptions work;
    work.max_steps = 100;
    work.num_records = 1000;
    work.batch_size = 10;
    coordinator_.start()->StartTraining({}, *WorkLedger::FromState(state, work));
    ASSERT_EQ(coordinator_.members()->Register(kSecondWorker, TestId(1), 0, "host:7").status(),
              absl::OkStatus());
  }
  // One worker does `steps` steps of 10 examples in a second. A synchronous step is the mean of
  // more than one batch.
  void Train(int64_t steps, double loss, int64_t batches = 1) {
    for (int64_t i = 0; i < steps; ++i) {
      const auto lease =
          coordinator_.requests()->AcquireWork(kSecondWorker, TestId(1), {}, absl::ZeroDuration());
      ASSERT_TRUE(lease.ok() && lease->has_value());
      const auto size = static_cast<int64_t>((*lease)->tickets.size());
      ASSERT_EQ(size, 1) << "the clock stands, so leases must be small";
      WorkerReport report;
      report.leases = {{(*lease)->id, size}};
      report.losses = {{(*lease)->tickets[0].step, loss}};
      report.figures.set_steps(batches);
      report.figures.set_examples(10 * batches);
      report.figures.set_loss_sum(loss * static_cast<double>(batches));
      report.figures.set_staleness_sum(2);
      report.figures.set_credit_wait_seconds(0.25);
      report.figures.set_input_seconds(1);
      report.figures.set_pull_seconds(2);
      report.figures.set_compute_seconds(3);
      report.figures.set_push_seconds(4);
      report.figures.set_bytes_pushed(1000);
      report.figures.set_bytes_pulled(2000);
      ASSERT_EQ(coordinator_.members()->Heartbeat(kSecondWorker, TestId(1), report),
                absl::OkStatus());
      clock_.Advance(absl::Seconds(1) / steps);
    }
  }
  std::vector<std::string> LinesOf(const std::function<void()>& call) {
    testing::internal::CaptureStdout();
    call();
    return absl::StrSplit(testing::internal::GetCapturedStdout(), '\n', absl::SkipEmpty());
  }
  nlohmann::json StatusFile() {
    const auto text = ReadFile(JoinPath(directory_, "status.json"));
    EXPECT_TRUE(text.ok()) << text.status();
    return nlohmann::json::parse(text.ok() ? *text : "null");
  }
  // Events beyond those that tell the version and where training starts.
  std::vector<v1::Event> Events() {
    std::vector<v1::Event> events;
    const std::vector<std::string> names = *ListDirectory(directory_);
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, "events.out.tfevents.")) continue;
      const auto records = ReadTfRecords(JoinPath(directory_, name));
      EXPECT_TRUE(records.ok()) << records.status();
      for (const std::string& record : *records) {
        EXPECT_TRUE(events.emplace_back().ParseFromString(record));
      }
    }
    // The first event makes the file.
    if (events.empty()) return events;
    EXPECT_EQ(events[0].file_version(), "brain.Event:2");
    events.erase(events.begin());
    if (!events.empty() && events[0].has_session_log()) {
      start_ = events[0];
      events.erase(events.begin());
    }
    return events;
  }

  ManualClock clock_;
  const std::string directory_ = FreshDirectory();
  Coordinator coordinator_{{0, absl::Seconds(1000), absl::Nanoseconds(1), 64, 10}, &clock_};
  std::vector<std::string> missing_;
  SnapshotFigures snapshots_;
  std::unique_ptr<Reporter> reporter_;
  v1::Event start_;
};

TEST_F(ReporterTest, SaysWhomTheJobWaitsFor) {
  missing_ = {"ps-1 at host:2222"};
  reporter_->Update();
  const nlohmann::json status = StatusFile();
  EXPECT_EQ(status["phase"], "WAITING_FOR_SERVERS");
  EXPECT_EQ(status["waiting_for"], nlohmann::json({"ps-1 at host:2222"}));
  EXPECT_EQ(status["step"], 0);
  EXPECT_FALSE(status.contains("loss"));
  StartTraining();
  reporter_->Finish();
  EXPECT_FALSE(StatusFile().contains("waiting_for"));
}

TEST_F(ReporterTest, ASynchronousStepCountsOnceAndItsExamplesAll) {
  StartTraining();
  const std::vector<std::string> lines = LinesOf([&] {
    reporter_->Update();
    Train(10, 0.25, /*batches=*/3);
    Train(10, 0.25, /*batches=*/3);
    reporter_->Update();
    reporter_->Finish();
  });
  EXPECT_THAT(lines, testing::Contains(
                         testing::HasSubstr(" steps_per_second=10 examples_per_second=300 ")));
  const nlohmann::json status = StatusFile();
  EXPECT_DOUBLE_EQ(status["loss"], 0.25);
  EXPECT_DOUBLE_EQ(status["steps_per_second"], 10);
  EXPECT_DOUBLE_EQ(status["examples_per_second"], 300);
  EXPECT_DOUBLE_EQ(status["eta_seconds"], 8);
}

TEST_F(ReporterTest, StatusFileTellsHowTrainingGoes) {
  StartTraining();
  LinesOf([&] {
    reporter_->Update();
    Train(10, 0.25);
    Train(10, 0.75);
    reporter_->Update();
    coordinator_.evaluations()->SetSnapshotStep(15);
    reporter_->Finish();
  });
  const nlohmann::json status = StatusFile();
  EXPECT_EQ(status["phase"], "TRAINING");
  EXPECT_EQ(status["step"], 20);
  EXPECT_EQ(status["max_steps"], 100);
  EXPECT_EQ(status["snapshot_step"], 15);
  EXPECT_EQ(status["error"], "");
  EXPECT_DOUBLE_EQ(status["epoch"], 0.2);
  EXPECT_DOUBLE_EQ(status["loss"], 0.5);
  EXPECT_DOUBLE_EQ(status["steps_per_second"], 10);
  EXPECT_DOUBLE_EQ(status["examples_per_second"], 100);
  EXPECT_DOUBLE_EQ(status["eta_seconds"], 8);
  EXPECT_DOUBLE_EQ(status["staleness"], 2);
  EXPECT_DOUBLE_EQ(status["credit_wait_seconds"], 0.25);
  EXPECT_EQ(status["step_seconds"],
            nlohmann::json({{"input", 1.0}, {"pull", 2.0}, {"compute", 3.0}, {"push", 4.0}}));
  EXPECT_DOUBLE_EQ(status["pushed_bytes_per_second"], 10000);
  EXPECT_DOUBLE_EQ(status["pulled_bytes_per_second"], 20000);
  ASSERT_THAT(status["members"], SizeIs(1));
  EXPECT_EQ(status["members"][0]["task"], "worker-1");
  EXPECT_EQ(status["members"][0]["peer"], "host:7");
  EXPECT_EQ(status["members"][0]["state"], "alive");
  EXPECT_EQ(status["members"][0]["restarts"], 0);
}

TEST_F(ReporterTest, StatusFileIsWrittenTwiceASecond) {
  reporter_->Update();
  StartTraining();
  clock_.Advance(absl::Milliseconds(499));
  reporter_->Update();
  EXPECT_EQ(StatusFile()["phase"], "WAITING_FOR_SERVERS");
  clock_.Advance(absl::Milliseconds(1));
  reporter_->Update();
  EXPECT_EQ(StatusFile()["phase"], "TRAINING");
}

TEST_F(ReporterTest, StatusFileHasTheErrorEvenIfItIsNotUtf8) {
  coordinator_.control()->Fail(absl::DataLossError("bad file \xff"));
  reporter_->Finish();
  const nlohmann::json status = StatusFile();
  EXPECT_EQ(status["phase"], "FAILED");
  EXPECT_THAT(status["error"].get<std::string>(), StartsWith("bad file "));
}

TEST_F(ReporterTest, OneMetricsLinePerInterval) {
  StartTraining();
  reporter_->Update();
  EXPECT_THAT(LinesOf([&] {
                Train(9, 0.5);
                reporter_->Update();
              }),
              IsEmpty());
  const std::vector<std::string> lines = LinesOf([&] {
    Train(1, 1.5);
    reporter_->Update();
    reporter_->Update();
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              MatchesRegex("2023-11-14T22:13:2[0-9].[0-9]+Z step=10 loss=0.6 "
                           "learning_rate=0.5 steps_per_second=5 "
                           "examples_per_second=50 staleness=2 credit_wait_seconds=0.25"));
}

TEST_F(ReporterTest, OneMetricsLinePerEvaluation) {
  StartTraining();
  coordinator_.evaluations()->SetSnapshotStep(9);
  const std::vector<std::string> lines = LinesOf([&] {
    reporter_->Update();
    coordinator_.evaluations()->AcknowledgeEvaluation(5, 0, {{"accuracy", 0.75}, {"loss", 0.5}});
    reporter_->Update();
    reporter_->Update();
    coordinator_.evaluations()->AcknowledgeEvaluation(4, 0, {{"accuracy", 0.5}});
    reporter_->Update();
    coordinator_.evaluations()->AcknowledgeEvaluation(9, 0, {{"accuracy", 0.875}, {"loss", 0.25}});
    reporter_->Finish();
  });
  EXPECT_THAT(lines, ElementsAre(MatchesRegex(".*Z step=5 eval_accuracy=0.75 eval_loss=0.5"),
                                 MatchesRegex(".*Z step=9 eval_accuracy=0.875 eval_loss=0.25")));
}

TEST_F(ReporterTest, TheWaitForWorkersIsNotTrainingTime) {
  StartTraining();
  reporter_->Update();
  clock_.Advance(absl::Seconds(100));
  reporter_->Update();
  const std::vector<std::string> lines = LinesOf([&] {
    Train(10, 0.5);
    reporter_->Update();
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_TRUE(absl::StrContains(lines[0], " steps_per_second=10 ")) << lines[0];
}

TEST_F(ReporterTest, EventsHoldTheSameFigures) {
  StartTraining();
  LinesOf([&] {
    reporter_->Update();
    Train(10, 0.5);
    reporter_->Update();
    Train(10, 0.25);
    reporter_->Update();
  });
  const std::vector<v1::Event> events = Events();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].step(), 10);
  EXPECT_EQ(events[1].step(), 20);
  std::vector<std::string> scalars;
  for (const v1::Summary::Value& value : events[1].summary().value()) {
    scalars.push_back(absl::StrCat(value.tag(), "=", value.simple_value()));
  }
  EXPECT_THAT(scalars, ElementsAre("loss=0.25", "learning_rate=0.5", "speed/steps_per_second=10",
                                   "speed/examples_per_second=100", "exchange/staleness=2",
                                   "exchange/credit_wait_seconds=0.25",
                                   "exchange/pushed_bytes_per_second=10000",
                                   "exchange/pulled_bytes_per_second=20000"));
}

// Its points have no rates: nothing was measured.
TEST_F(ReporterTest, AJobThatEndsBeforeTheFirstLookHasNoRates) {
  StartTraining();
  const std::vector<std::string> lines = LinesOf([&] {
    Train(10, 0.5);
    reporter_->Update();
    reporter_->Finish();
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_TRUE(absl::EndsWith(lines[0], " step=10 loss=0.5 learning_rate=0.5")) << lines[0];
  EXPECT_EQ(Events().at(0).summary().value_size(), 2);
}

TEST_F(ReporterTest, WhereTrainingGoesOnIsInTheEvents) {
  StartTraining(/*restored_step=*/40);
  reporter_->Update();
  LinesOf([&] {
    Train(10, 0.5);
    reporter_->Update();
  });
  const std::vector<v1::Event> events = Events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(start_.session_log().status(), v1::SessionLog::START);
  EXPECT_EQ(start_.step(), 41);
  EXPECT_EQ(events[0].step(), 50);
}

TEST_F(ReporterTest, HistogramsOfAWorkerComeIntoTheRunsFile) {
  v1::Event event;
  event.set_step(7);
  event.mutable_summary()->add_value()->set_tag("gradients/w");
  ASSERT_EQ(HandOverEvent(event, JoinPath(directory_, "gradients"), FileSystem::Real()),
            absl::OkStatus());
  reporter_->Finish();
  ASSERT_THAT(Events(), SizeIs(1));
  EXPECT_EQ(Events()[0].summary().value(0).tag(), "gradients/w");
}

TEST_F(ReporterTest, HowTheRunEndedIsWrittenOnce) {
  reporter_->Finish();
  EXPECT_THAT(Events(), IsEmpty());
  coordinator_.control()->Fail(absl::InternalError("over"));
  reporter_->Finish();
  reporter_->Finish();
  ASSERT_THAT(Events(), SizeIs(1));
  EXPECT_EQ(Events()[0].summary().value(0).tag(), "_hparams_/session_end_info");
}

TEST_F(ReporterTest, WhatScriptsLogHasCurvesAndAPlaceInTheStatus) {
  StartTraining();
  reporter_->Update();
  WorkerReport logged;
  logged.logged = {{"accuracy", 0, 0.25}, {"accuracy", 9, 0.75}, {"of the batch", 3, 7}};
  ASSERT_EQ(coordinator_.members()->Heartbeat(kSecondWorker, TestId(1), logged), absl::OkStatus());
  const std::vector<std::string> lines = LinesOf([&] {
    Train(10, 0.5);
    reporter_->Finish();
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr(" accuracy=0.5"));
  EXPECT_THAT(lines[0], Not(HasSubstr("batch")));
  std::map<std::string, float> scalars;
  for (const v1::Event& event : Events()) {
    for (const auto& value : event.summary().value()) scalars[value.tag()] = value.simple_value();
  }
  EXPECT_EQ(scalars["accuracy"], 0.5f);
  EXPECT_EQ(scalars["of the batch"], 7.0f);
  EXPECT_EQ(StatusFile()["logged"], nlohmann::json({{"accuracy", 0.5}, {"of the batch", 7.0}}));
}

// The figures of the newest interval are of steps before.
TEST_F(ReporterTest, TheLastLossIsThatOfTheLastSteps) {
  StartTraining();
  LinesOf([&] {
    reporter_->Update();
    for (int i = 0; i < 3; ++i) {
      Train(10, 2.0);
      reporter_->Update();
    }
    EXPECT_DOUBLE_EQ(StatusFile()["loss"], 2);
    Train(20, 0.25);
    reporter_->Finish();
  });
  EXPECT_DOUBLE_EQ(StatusFile()["loss"], 0.25);
  EXPECT_EQ(StatusFile()["diverging"], false);
}

TEST_F(ReporterTest, FinishReportsTheRest) {
  StartTraining();
  reporter_->Update();
  const std::vector<std::string> lines = LinesOf([&] {
    Train(3, 0.5);
    reporter_->Finish();
    reporter_->Finish();
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_TRUE(absl::StrContains(lines[0], " step=3 ")) << lines[0];
}

TEST_F(ReporterTest, ARestoredJobReportsOnlyItsOwnSteps) {
  StartTraining(40);
  const std::vector<std::string> lines = LinesOf([&] {
    reporter_->Update();
    reporter_->Update();
    Train(10, 0.5);
    reporter_->Update();
  });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_TRUE(
      absl::StrContains(lines[0], " step=50 loss=0.5 learning_rate=0.5 steps_per_second=10 "))
      << lines[0];
}

TEST_F(ReporterTest, StatusFileTellsHowSnapshotsGo) {
  reporter_->Update();
  EXPECT_FALSE(StatusFile()["snapshot"].contains("age_seconds"));
  snapshots_.step = 15;
  snapshots_.committed = clock_.Now() - absl::Seconds(30);
  snapshots_.write_time = absl::Milliseconds(250);
  snapshots_.bytes = 4096;
  snapshots_.longest_cut_microseconds = 12;
  snapshots_.written = 3;
  snapshots_.failures = 1;
  snapshots_.error = "disk full";
  reporter_->Finish();
  const nlohmann::json status = StatusFile();
  EXPECT_EQ(status["mode"], "async");
  EXPECT_EQ(status["snapshot"], nlohmann::json({{"age_seconds", 30.0},
                                                {"write_seconds", 0.25},
                                                {"bytes", 4096},
                                                {"cut_microseconds", 12},
                                                {"written", 3},
                                                {"failures", 1},
                                                {"error", "disk full"}}));
}

TEST_F(ReporterTest, AMissingDirectoryNeitherEndsTheJobNorFillsTheLog) {
  const std::string moved = directory_ + ".moved";
  StartTraining();
  reporter_->Update();
  ASSERT_EQ(RenameFile(directory_, moved), absl::OkStatus());
  testing::internal::CaptureStderr();
  LinesOf([&] {
    for (int i = 0; i < 6; ++i) {
      Train(10, 0.5);
      reporter_->Update();
    }
  });
  const std::vector<std::string> lines =
      absl::StrSplit(testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, UnorderedElementsAre(HasSubstr(" events: "), HasSubstr(" status.json: ")));
  EXPECT_FALSE(FileExists(directory_));
  ASSERT_EQ(RenameFile(moved, directory_), absl::OkStatus());
  LinesOf([&] {
    Train(10, 0.25);
    reporter_->Finish();
  });
  EXPECT_EQ(StatusFile()["step"], 70);
  const std::vector<v1::Event> events = Events();
  EXPECT_EQ(events.back().step(), 70);
}

}  // namespace
}  // namespace keelson
