// What the chief writes about its tasks: status.json, placement.json, the configuration, and the
// history.
#include "chief/reporting/status_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "chief/reporting/run_files.h"
#include "chief/reporting/task_history.h"
#include "chief/servers/fake_parameter_server.h"
#include "core/base/file.h"
#include "core/cluster/figures.h"
#include "core/config/train_config.h"
#include "core/summary/tf_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

constexpr Task kWorker = {Role::kWorker, 1};
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

// Sums after `steps` steps of 10 examples.
v1::WorkerFigures Sums(int64_t steps) {
  v1::WorkerFigures sums;
  sums.set_steps(steps);
  sums.set_examples(10 * steps);
  sums.set_staleness_sum(2 * steps);
  sums.set_staleness_max(5);
  for (int bucket = 0; bucket < 9; ++bucket) sums.add_staleness_counts(bucket == 2 ? steps : 0);
  sums.set_push_retries(3);
  sums.set_compute_seconds(0.25 * static_cast<double>(steps));
  sums.set_credit_wait_seconds(0.5 * static_cast<double>(steps));
  sums.set_bytes_pushed(100 * steps);
  sums.set_bytes_pulled(200 * steps);
  return sums;
}

v1::ShardStatus Answer(v1::ShardStatus::State state, uint64_t incarnation) {
  v1::ShardStatus answer;
  answer.set_state(state);
  answer.set_incarnation(incarnation);
  answer.set_shard_step(20);
  answer.set_value_bytes(1000);
  answer.set_slot_bytes(2000);
  answer.set_active_clients(2);
  return answer;
}

class StatusFileTest : public testing::Test {
 protected:
  StatusFileTest() {
    chief_ = {{Role::kChief, 0}, "host:1", 0xc, kNow, 2, kNow - absl::Seconds(60)};
    Member member = {kWorker, 0xa, "host:2", Member::kAlive, {}, 1, kNow, "cpu, 2 threads"};
    job_.members = {member};
    job_.workers[kWorker] = Sums(20);
    ServerView server;
    server.address = "host:3";
    servers_ = {server};
  }
  // Two seconds with ten steps.
  void MeasureOnce() {
    tasks_.Update(absl::Seconds(1), {{kWorker, Sums(10)}}, servers_);
    tasks_.Update(absl::Seconds(3), {{kWorker, Sums(20)}}, servers_);
  }
  Json Written() {
    const SnapshotFigures snapshots;
    StatusReport report = {kNow, chief_, job_, tasks_, servers_, snapshots, {"ps-0 at host:3"}};
    report.learning_rate = 0.5;
    report.expected_members = expected_;
    report.steps_per_epoch = 312.5;
    return Json::parse(StatusJson(report));
  }

  ChiefIdentity chief_;
  Coordinator::Status job_;
  TaskFigures tasks_{absl::Seconds(2), absl::Seconds(10)};
  std::vector<ServerView> servers_;
  std::vector<Task> expected_;
};

TEST_F(StatusFileTest, TellsTheJobAndItsChief) {
  job_.end_reason = "good enough";
  const Json json = Written();
  EXPECT_EQ(json["time"], 1.7e9);
  EXPECT_EQ(json["started"], 1.7e9 - 60);
  EXPECT_EQ(json["learning_rate"], 0.5);
  EXPECT_EQ(json["steps_per_epoch"], 312.5);
  EXPECT_EQ(json["end_reason"], "good enough");
  EXPECT_EQ(json["waiting_for"], Json({"ps-0 at host:3"}));
  EXPECT_EQ(json["chief"], Json({{"task", "chief-0"},
                                 {"peer", "host:1"},
                                 {"incarnation", "000000000000000c"},
                                 {"since", 1.7e9},
                                 {"restarts", 2}}));
  EXPECT_FALSE(json.contains("loss"));
}

TEST_F(StatusFileTest, AWorkerHasItsSumsAtOnceAndItsRatesAfterAnInterval) {
  Json member = Written()["members"][0];
  EXPECT_EQ(member, Json({{"task", "worker-1"},
                          {"role", "worker"},
                          {"index", 1},
                          {"peer", "host:2"},
                          {"state", "alive"},
                          {"since", 1.7e9},
                          {"restarts", 1},
                          {"incarnation", "000000000000000a"},
                          {"device", "cpu, 2 threads"},
                          {"steps", 20},
                          {"examples", 200},
                          {"push_retries", 3},
                          {"staleness",
                           {{"max", 5},
                            {"bounds", {0, 1, 2, 4, 8, 16, 32, 64}},
                            {"counts", {0, 0, 20, 0, 0, 0, 0, 0, 0}}}}}));
  MeasureOnce();
  member = Written()["members"][0];
  EXPECT_EQ(member["steps_per_second"], 5.0);
  EXPECT_EQ(member["examples_per_second"], 50.0);
  EXPECT_EQ(member["pushed_bytes_per_second"], 500.0);
  EXPECT_EQ(member["pulled_bytes_per_second"], 1000.0);
  EXPECT_EQ(member["credit_wait_seconds"], 0.5);
  EXPECT_EQ(member["step_seconds"],
            Json({{"input", 0.0}, {"pull", 0.0}, {"compute", 0.25}, {"push", 0.0}}));
  EXPECT_EQ(member["staleness"]["mean"], 2.0);
  EXPECT_EQ(member["staleness"]["max"], 5);
}

// The place of `key`, "staleness.max", in the JSON.
bool HasKey(const Json& json, const std::string& key) {
  return json.contains(
      Json::json_pointer(absl::StrCat("/", absl::StrReplaceAll(key, {{".", "/"}}))));
}

TEST_F(StatusFileTest, EveryFigureIsToldAsASumOrOfAnInterval) {
  MeasureOnce();
  job_.newest.set_steps_per_second(1);
  const Json json = Written();
  std::set<std::string> told;
  for (const Figure& figure : WorkerFigures()) {
    const std::string& key = figure.options().status();
    if (!key.empty() && HasKey(json["members"][0], key)) told.insert(figure.name());
  }
  for (const Figure& figure : TrainingFigures()) {
    const v1::FigureOptions& options = figure.options();
    const std::string& of_job =
        options.job_status().empty() ? options.status() : options.job_status();
    EXPECT_TRUE(HasKey(json, of_job)) << figure.name();
    EXPECT_TRUE(options.status().empty() || HasKey(json["members"][0], options.status()))
        << figure.name();
    told.insert(options.of());
  }
  // The chief gives up when there is one.
  told.insert("non_finite_losses");
  for (const Figure& figure : WorkerFigures()) EXPECT_TRUE(told.contains(figure.name()));
}

TEST_F(StatusFileTest, AWorkerThatIsLostHasNoRates) {
  MeasureOnce();
  job_.members[0].state = Member::kLost;
  const Json member = Written()["members"][0];
  EXPECT_EQ(member["state"], "lost");
  EXPECT_EQ(member["steps"], 20);
  EXPECT_FALSE(member.contains("steps_per_second"));
  EXPECT_FALSE(member["staleness"].contains("mean"));
}

TEST_F(StatusFileTest, WhatAnOldWorkerDoesNotTellIsAbsent) {
  job_.members[0].device.clear();
  job_.workers[kWorker].clear_staleness_counts();
  const Json member = Written()["members"][0];
  EXPECT_FALSE(member.contains("device"));
  EXPECT_FALSE(member["staleness"].contains("counts"));
}

TEST_F(StatusFileTest, AnEvaluatorHasNoWork) {
  job_.members[0].task = {Role::kEvaluator, 0};
  job_.workers = {{{Role::kEvaluator, 0}, v1::WorkerFigures()}};
  const Json member = Written()["members"][0];
  EXPECT_EQ(member["role"], "evaluator");
  EXPECT_FALSE(member.contains("steps"));
}

TEST_F(StatusFileTest, WhoNeverCameIsWaitedFor) {
  expected_ = {{Role::kWorker, 0}, kWorker, {Role::kEvaluator, 0}};
  const Json members = Written()["members"];
  ASSERT_THAT(members, SizeIs(3));
  EXPECT_EQ(members[0]["task"], "worker-1");
  EXPECT_EQ(members[0]["state"], "alive");
  EXPECT_EQ(members[1], Json({{"task", "worker-0"},
                              {"role", "worker"},
                              {"index", 0},
                              {"state", "waiting"},
                              {"since", 1.7e9},
                              {"restarts", 0}}));
  EXPECT_EQ(members[2]["task"], "evaluator-0");
}

TEST_F(StatusFileTest, WhatIsNotFiniteIsNull) {
  job_.newest.set_steps_per_second(1);
  job_.newest.set_loss(std::numeric_limits<double>::quiet_NaN());
  job_.newest.set_staleness(std::numeric_limits<double>::infinity());
  const Json json = Written();
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["staleness"].is_null());
  EXPECT_EQ(json["steps_per_second"], 1.0);
}

TEST_F(StatusFileTest, AServerIsTold) {
  EXPECT_EQ(Written()["servers"][0]["state"], "waiting");
  EXPECT_FALSE(Written()["servers"][0].contains("incarnation"));
  servers_[0].NoteAnswer(Answer(v1::ShardStatus::READY, 0xb), kNow);
  tasks_.Update(absl::Seconds(1), {}, servers_);
  servers_[0].pushed_bytes = 300;
  servers_[0].pulled_bytes = 500;
  tasks_.Update(absl::Seconds(3), {}, servers_);
  EXPECT_EQ(Written()["servers"][0], Json({{"task", "ps-0"},
                                           {"address", "host:3"},
                                           {"state", "alive"},
                                           {"since", 1.7e9},
                                           {"restarts", 0},
                                           {"incarnation", "000000000000000b"},
                                           {"shard_step", 20},
                                           {"value_bytes", 1000},
                                           {"slot_bytes", 2000},
                                           {"clients", 2},
                                           {"pushed_bytes_per_second", 150.0},
                                           {"pulled_bytes_per_second", 250.0}}));
  servers_[0].NoteSilence(kNow);
  EXPECT_EQ(Written()["servers"][0]["state"], "lost");
  EXPECT_FALSE(Written()["servers"][0].contains("pushed_bytes_per_second"));
}

TEST_F(StatusFileTest, TheNextChiefCountsItsPredecessors) {
  const ChiefIdentity first = AfterPredecessor(chief_, "");
  EXPECT_EQ(first.started, kNow);
  EXPECT_EQ(first.restarts, 2) << "as it was";
  const std::string text = Written().dump();
  ChiefIdentity next = chief_;
  next.since = kNow + absl::Seconds(100);
  next = AfterPredecessor(next, text);
  EXPECT_EQ(next.started, kNow - absl::Seconds(60));
  EXPECT_EQ(next.restarts, 3);
}

TEST_F(StatusFileTest, APredecessorsFileThatMakesNoSenseIsPassedOver) {
  chief_.restarts = 0;
  for (const char* text : {"{", "[]", "null", "\xff"}) {
    EXPECT_EQ(AfterPredecessor(chief_, text).restarts, 0) << text;
    EXPECT_EQ(AfterPredecessor(chief_, text).started, kNow) << text;
  }
  for (const char* text :
       {"{}", R"({"started": "x", "chief": 1})", R"({"started": null, "chief": {"restarts": "x"}})",
        R"({"started": 1e300, "chief": {"restarts": -9}})"}) {
    EXPECT_EQ(AfterPredecessor(chief_, text).restarts, 1) << text;
    EXPECT_EQ(AfterPredecessor(chief_, text).started, kNow) << text;
  }
}

// ---- Servers and rates.

TEST(ServerStateTest, FollowsWhatTheServerSays) {
  ServerView server;
  server.NoteSilence(kNow);
  EXPECT_EQ(server.kind, ServerView::kWaiting) << "it is expected still";
  server.NoteAnswer(Answer(v1::ShardStatus::EMPTY, 1), kNow);
  EXPECT_EQ(server.kind, ServerView::kRestoring);
  server.NoteReady(kNow + absl::Seconds(1));
  server.NoteAnswer(Answer(v1::ShardStatus::READY, 1), kNow + absl::Seconds(2));
  EXPECT_EQ(server.kind, ServerView::kAlive);
  EXPECT_EQ(server.since, kNow + absl::Seconds(1));
  EXPECT_EQ(server.restarts, 0);
  server.NoteSilence(kNow + absl::Seconds(3));
  server.NoteSilence(kNow + absl::Seconds(4));
  EXPECT_EQ(server.kind, ServerView::kLost);
  EXPECT_EQ(server.since, kNow + absl::Seconds(3));
  server.NoteAnswer(Answer(v1::ShardStatus::EMPTY, 2), kNow + absl::Seconds(5));
  EXPECT_EQ(server.kind, ServerView::kRestoring);
  EXPECT_EQ(server.restarts, 1);
  server.NoteEnd(kNow + absl::Seconds(6));
  EXPECT_EQ(ServerKindName(server.kind), "left");
}

TEST(ServerStateTest, TheTaskComesFromTheName) {
  EXPECT_EQ(ServerTask("ps-12"), (Task{Role::kPs, 12}));
  EXPECT_EQ(ServerTask("ps-"), (Task{Role::kPs, 0}));
  EXPECT_EQ(ServerTask("other"), (Task{Role::kPs, 0}));
}

class TaskFiguresTest : public testing::Test {
 protected:
  bool Update(double seconds, int64_t steps) {
    return tasks_.Update(absl::Seconds(seconds), {{kWorker, Sums(steps)}}, servers_);
  }
  double Rate() { return tasks_.workers().at(kWorker).steps_per_second(); }

  TaskFigures tasks_{absl::Seconds(2), absl::Seconds(10)};
  std::vector<ServerView> servers_;
};

TEST_F(TaskFiguresTest, TheTimeBeforeTheFirstStepDoesNotCount) {
  EXPECT_FALSE(Update(0, 0));
  EXPECT_TRUE(Update(50, 0));
  EXPECT_THAT(tasks_.workers(), IsEmpty());
  EXPECT_TRUE(Update(52, 20));
  EXPECT_EQ(Rate(), 10);
}

TEST_F(TaskFiguresTest, ASlowStepCountsWithTheTimeItTook) {
  Update(0, 1);
  Update(2, 2);
  EXPECT_EQ(Rate(), 0.5);
  Update(4, 2);
  EXPECT_EQ(Rate(), 0.5) << "it may be in the middle of a step";
  Update(6, 3);
  EXPECT_EQ(Rate(), 0.25);
}

TEST_F(TaskFiguresTest, AWorkerThatStandsStillIsNoticed) {
  Update(0, 1);
  Update(2, 21);
  EXPECT_EQ(Rate(), 10);
  Update(10, 21);
  EXPECT_EQ(Rate(), 10);
  Update(12, 21);
  EXPECT_EQ(Rate(), 0);
  EXPECT_TRUE(std::isnan(tasks_.workers().at(kWorker).staleness()));
}

TEST_F(TaskFiguresTest, ARestartedServerBeginsAnew) {
  servers_.resize(1);
  servers_[0].incarnation = 1;
  servers_[0].pushed_bytes = 1000;
  Update(0, 0);
  servers_[0].pushed_bytes = 1400;
  Update(2, 0);
  EXPECT_EQ(tasks_.servers().at(servers_[0].task).pushed_bytes_per_second, 200);
  servers_[0].incarnation = 2;
  servers_[0].pushed_bytes = 10;
  Update(3, 0);
  EXPECT_THAT(tasks_.servers(), IsEmpty());
  servers_[0].pushed_bytes = 20;
  Update(4, 0);
  EXPECT_EQ(tasks_.servers().at(servers_[0].task).pushed_bytes_per_second, 10);
}

TEST_F(TaskFiguresTest, EvaluatorsDoNotWork) {
  tasks_.Update(absl::ZeroDuration(), {{{Role::kEvaluator, 0}, Sums(1)}}, {});
  tasks_.Update(absl::Seconds(2), {{{Role::kEvaluator, 0}, Sums(2)}}, {});
  EXPECT_THAT(tasks_.workers(), IsEmpty());
}

// ---- History.

class TaskHistoryTest : public testing::Test {
 protected:
  void Advance(absl::Duration by, int64_t steps) {
    clock_.Advance(by);
    status_.workers[kWorker] = Sums(steps);
    status_.totals = Sums(steps);
    status_.step = steps;
    ASSERT_EQ(history_.Update(status_, servers_), absl::OkStatus());
  }
  // "step: tag=value …" of each event beyond the first, which tells the version.
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    const auto names = ListDirectory(directory_ + "/tasks");
    if (!names.ok()) return events;
    for (const std::string& name : *names) {
      const auto records = ReadTfRecords(directory_ + "/tasks/" + name);
      EXPECT_TRUE(records.ok()) << records.status();
      for (size_t i = 1; i < records->size(); ++i) {
        v1::Event event;
        EXPECT_TRUE(event.ParseFromString((*records)[i]));
        std::string& line = events.emplace_back(absl::StrCat(event.step(), ":"));
        for (const v1::Summary::Value& value : event.summary().value()) {
          absl::StrAppend(&line, " ", value.tag(), "=", value.simple_value());
        }
      }
    }
    return events;
  }

  const std::string directory_ = FreshModelDirectory();
  ManualClock clock_;
  TaskHistory history_{directory_, &clock_, FileSystem::Real()};
  Coordinator::Status status_;
  std::vector<ServerView> servers_;
};

TEST_F(TaskHistoryTest, OneEventInHalfAMinuteAndOneAtTheEnd) {
  servers_.resize(1);
  servers_[0].incarnation = 1;
  Advance(absl::ZeroDuration(), 0);
  Advance(absl::Seconds(29), 15);
  EXPECT_THAT(Events(), IsEmpty());
  servers_[0].pushed_bytes = 60;
  Advance(absl::Seconds(1), 30);
  EXPECT_THAT(Events(),
              ElementsAre("30: worker-1/steps_per_second=1 worker-1/examples_per_second=10 "
                          "worker-1/staleness=2 worker-1/pushed_bytes_per_second=100 "
                          "worker-1/pulled_bytes_per_second=200 worker-1/input_seconds=0 "
                          "worker-1/pull_seconds=0 worker-1/compute_seconds=0.25 "
                          "worker-1/push_seconds=0 ps-0/pushed_bytes_per_second=2 "
                          "ps-0/pulled_bytes_per_second=0"));
  Advance(absl::Seconds(10), 50);
  ASSERT_EQ(history_.Finish(status_, servers_), absl::OkStatus());
  ASSERT_EQ(history_.Finish(status_, servers_), absl::OkStatus());
  ASSERT_THAT(Events(), SizeIs(2));
  EXPECT_TRUE(absl::StartsWith(Events()[1], "50: worker-1/steps_per_second=2 ")) << Events()[1];
}

TEST_F(TaskHistoryTest, AWorkerThatStandsStillHasNoMeans) {
  Advance(absl::ZeroDuration(), 10);
  Advance(absl::Seconds(30), 20);
  Advance(absl::Seconds(30), 20);
  ASSERT_THAT(Events(), SizeIs(2));
  EXPECT_EQ(Events()[1],
            "20: worker-1/steps_per_second=0 worker-1/examples_per_second=0 "
            "worker-1/pushed_bytes_per_second=0 worker-1/pulled_bytes_per_second=0");
}

TEST_F(TaskHistoryTest, AnEventThatCannotBeWrittenIsTold) {
  ASSERT_EQ(WriteFileAtomically(directory_ + "/tasks", "a file"), absl::OkStatus());
  Advance(absl::ZeroDuration(), 10);
  clock_.Advance(absl::Seconds(30));
  status_.workers[kWorker] = Sums(20);
  EXPECT_FALSE(history_.Update(status_, servers_).ok());
}

// ---- What is written once.

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() : servers_(2) {
    servers_[1].task.index = 3;
    config_.mutable_checkpoint()->set_model_dir(FreshModelDirectory());
    config_.mutable_data()->set_data_dir("some/where");
  }
  absl::Status Write() { return WriteRunFiles(config_, placement_, servers_, FileSystem::Real()); }
  std::string File(const std::string& name) {
    return ReadFile(config_.checkpoint().model_dir() + "/" + name).value_or("");
  }

  v1::TrainConfig config_;
  Placement placement_ = Placement::Compute({{"w", Shape({6000, 2}), {}}, {"b", Shape({}), {}}}, 2);
  std::vector<ServerView> servers_;
};

TEST_F(RunFilesTest, PlacementTellsWhereTheVariablesLive) {
  ASSERT_EQ(Write(), absl::OkStatus());
  const Json json = Json::parse(File("placement.json"));
  ASSERT_THAT(json["shards"], SizeIs(2));
  EXPECT_EQ(json["shards"][0], Json({{"task", "ps-0"}, {"bytes", placement_.ShardBytes(0)}}));
  EXPECT_EQ(json["shards"][1]["task"], "ps-3");
  const double mean = (6000 * 2 + 1) * 4 / 2.0;
  const auto largest = std::max(placement_.ShardBytes(0), placement_.ShardBytes(1));
  EXPECT_DOUBLE_EQ(json["balance"], static_cast<double>(largest) / mean);
  ASSERT_THAT(json["variables"], SizeIs(2));
  EXPECT_EQ(json["variables"][0]["name"], "b");
  EXPECT_EQ(json["variables"][0]["shape"], Json::array());
  EXPECT_EQ(json["variables"][0]["bytes"], 4);
  EXPECT_EQ(json["variables"][1]["shape"], Json({6000, 2}));
  int64_t rows = 0;
  for (const Json& partition : json["variables"][1]["partitions"]) {
    EXPECT_EQ(partition["row_begin"], rows);
    rows = partition["row_end"];
    EXPECT_EQ(partition["bytes"], (rows - partition["row_begin"].get<int64_t>()) * 8);
  }
  EXPECT_EQ(rows, 6000);
}

TEST_F(RunFilesTest, TheConfigurationCanBeReadBack) {
  ASSERT_EQ(Write(), absl::OkStatus());
  const auto read = ParseTrainConfig(File("train_config.textproto"), "train_config.textproto");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), config_.SerializeAsString());
}

TEST_F(RunFilesTest, ADirectoryThatIsGoneIsAnError) {
  config_.mutable_checkpoint()->set_model_dir("/nonexistent/model");
  EXPECT_FALSE(Write().ok());
}

}  // namespace
}  // namespace keelson
