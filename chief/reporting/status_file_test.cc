#include "chief/reporting/status_file.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "chief/reporting/figures_testing.h"
#include "core/cluster/figures.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::SizeIs;
using Json = nlohmann::json;

constexpr Task kWorker = {Role::kWorker, 1};
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

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
    chief_ = {{Role::kChief, 0}, "host:1", kNow, 2, kNow - absl::Seconds(60)};
    Member member = {kWorker, 0xa, "host:2", Member::kAlive, {}, 1, kNow, "cpu, 2 threads"};
    job_.members = {member};
    job_.workers[kWorker] = SumsAfter(20);
    ServerView server;
    server.address = "host:3";
    servers_ = {server};
  }
  // Two seconds with ten steps.
  void MeasureOnce() {
    tasks_.Update(absl::Seconds(1), {{kWorker, SumsAfter(10)}}, servers_);
    tasks_.Update(absl::Seconds(3), {{kWorker, SumsAfter(20)}}, servers_);
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
  CoordinatorStatus job_;
  TaskFigures tasks_{absl::Seconds(2), absl::Seconds(10)};
  std::vector<ServerView> servers_;
  std::vector<Task> expected_;
};

TEST_F(StatusFileTest, TellsHowFarAStreamIs) {
  job_.stream.emplace();
  job_.stream->set_file("part-2");
  job_.stream->set_done_records(120);
  job_.stream->set_known_records(240);
  MeasureOnce();
  const Json json = Written();
  EXPECT_EQ(
      json["stream"],
      Json({{"file", "part-2"}, {"done_records", 120}, {"known_records", 240}, {"ended", false}}));
  EXPECT_FALSE(json.contains("epoch"));
  EXPECT_FALSE(json.contains("max_steps"));
  EXPECT_FALSE(json.contains("eta_seconds"));
}

TEST_F(StatusFileTest, TellsTheJobAndItsChief) {
  job_.end_reason = "good enough";
  job_.missing_workers = 2;
  const Json json = Written();
  EXPECT_EQ(json["time"], 1.7e9);
  EXPECT_EQ(json["started"], 1.7e9 - 60);
  EXPECT_EQ(json["learning_rate"], 0.5);
  EXPECT_EQ(json["steps_per_epoch"], 312.5);
  EXPECT_EQ(json["end_reason"], "good enough");
  EXPECT_EQ(json["missing_workers"], 2);
  EXPECT_EQ(json["waiting_for"], Json({"ps-0 at host:3"}));
  EXPECT_EQ(json["chief"],
            Json({{"task", "chief-0"}, {"peer", "host:1"}, {"since", 1.7e9}, {"restarts", 2}}));
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
                          {"device", "cpu, 2 threads"},
                          {"steps", 20},
                          {"examples", 200},
                          {"push_retries", 3},
                          {"row_ids", {{"all", 0}, {"distinct", 0}}},
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
    told.insert({options.of(), options.without()});
  }
  // The chief gives up when there is one.
  told.insert("non_finite_losses");
  // Those that are by table are told there.
  told.insert({"table_row_ids", "table_distinct_row_ids"});
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
  EXPECT_FALSE(Written()["servers"][0].contains("shard_step"));
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

TEST_F(StatusFileTest, TablesAreAddedUpOverTheServers) {
  EXPECT_FALSE(Written().contains("tables"));
  servers_.resize(2);
  for (int s = 0; s < 2; ++s) {
    v1::ShardStatus answer = Answer(v1::ShardStatus::READY, 0xb);
    v1::TablePartStatus* const table = answer.add_tables();
    table->set_name("users");
    table->set_rows(10 + 20 * s);
    table->set_bytes(1000);
    table->set_refused_rows(s);
    table->set_looked_up(7);
    if (s == 0) table->add_hottest()->set_id(~uint64_t{0});
    servers_[s].NoteAnswer(answer, kNow);
  }
  EXPECT_EQ(
      Written()["tables"],
      Json::array({{{"name", "users"},
                    {"rows", 40},
                    {"bytes", 2000},
                    {"ghosts", 0},
                    {"refused_rows", 1},
                    {"admitted_rows", 0},
                    {"expired_rows", 0},
                    {"evicted_rows", 0},
                    {"looked_up", 14},
                    {"looked_up_absent", 0},
                    {"row_ids", {{"all", 0}, {"distinct", 0}}},
                    {"hottest",
                     Json::array({{{"id", "18446744073709551615"}, {"pushes", 0}, {"error", 0}}})},
                    {"balance", 1.5}}}));
  for (const int index : {0, 1}) {
    v1::WorkerFigures& worker = job_.workers[{Role::kWorker, index}];
    worker.add_table_row_ids(30);
    worker.add_table_distinct_row_ids(10 - index);
  }
  EXPECT_EQ(Written()["tables"][0]["row_ids"], Json({{"all", 60}, {"distinct", 19}}));
  const Json server = Written()["servers"][1]["tables"][0];
  EXPECT_EQ(server["rows"], 30);
  EXPECT_EQ(server["refused_rows"], 1);
  EXPECT_FALSE(server.contains("hottest"));
  servers_[1].NoteAnswer(Answer(v1::ShardStatus::EMPTY, 0xc), kNow);
  EXPECT_EQ(Written()["tables"][0]["rows"], 10);
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

}  // namespace
}  // namespace keelson
