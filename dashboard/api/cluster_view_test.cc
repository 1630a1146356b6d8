// ClusterJson of run_view.h.
#include <gmock/gmock.h>

#include "absl/strings/str_replace.h"
#include "core/cluster/figures.h"
#include "dashboard/api/run_view.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class ClusterViewTest : public testing::Test {
 protected:
  ClusterViewTest() { data_.status = TrainingStatus(); }

  Json Cluster() {
    keelson::Run::Options options;
    options.id = "mnist";
    const keelson::Run run(options);
    data_.state = DeriveRunState(data_.status, age_, done_);
    return ClusterJson(run, data_);
  }
  Json Task(const std::string& name) {
    const Json cluster = Cluster();
    for (const Json& task : cluster["tasks"]) {
      if (task["task"] == name) return task;
    }
    return nullptr;
  }
  // "kind: text"
  std::vector<std::string> Remarks(const std::string& name) {
    std::vector<std::string> remarks;
    const Json task = Task(name);
    if (!task.contains("remarks")) return remarks;
    for (const Json& remark : task["remarks"]) {
      remarks.push_back(remark["kind"].get<std::string>() + ": " +
                        remark["text"].get<std::string>());
    }
    return remarks;
  }
  Json& Worker(size_t i) { return data_.status["members"][i]; }
  Json& Server(size_t i) { return data_.status["servers"][i]; }

  RunData data_;
  absl::Duration age_;
  bool done_ = false;
};

TEST_F(ClusterViewTest, AStateThatIsNotKnownIsWaiting) {
  Worker(0)["state"] = "<b>flying</b>";
  Worker(1)["state"] = 7;
  EXPECT_EQ(Task("worker-0")["state"], "waiting");
  EXPECT_EQ(Task("worker-1")["state"], "waiting");
  EXPECT_EQ(Task("worker-2")["state"], "alive");
}

TEST_F(ClusterViewTest, HasAllTasksByRole) {
  const Json cluster = Cluster();
  EXPECT_EQ(cluster["run"], "mnist");
  EXPECT_EQ(cluster["updated"], 1.7e9);
  EXPECT_EQ(cluster["stale"], false);
  std::vector<std::string> tasks;
  for (const Json& task : cluster["tasks"]) tasks.push_back(task["task"]);
  EXPECT_THAT(tasks, ElementsAre("chief-0", "ps-0", "ps-1", "worker-0", "worker-1", "worker-2",
                                 "evaluator-0"));
}

TEST_F(ClusterViewTest, TellsOfATaskWhatTheChiefWrites) {
  EXPECT_EQ(Task("chief-0"), Json({{"task", "chief-0"},
                                   {"role", "chief"},
                                   {"index", 0},
                                   {"state", "alive"},
                                   {"since", 1.7e9 - 100},
                                   {"restarts", 1},
                                   {"peer", "host:8"}}));
  EXPECT_EQ(Task("ps-1"), Json({{"task", "ps-1"},
                                {"role", "ps"},
                                {"index", 1},
                                {"address", "host:2221"},
                                {"state", "alive"},
                                {"since", 1.7e9 - 95},
                                {"restarts", 0},
                                {"shard_step", 1200},
                                {"value_bytes", 471000},
                                {"slot_bytes", 942000},
                                {"clients", 3},
                                {"pushed_bytes_per_second", 1.5e7},
                                {"pulled_bytes_per_second", 1.5e7}}));
  EXPECT_EQ(Task("worker-2"), Worker(2));
}

TEST_F(ClusterViewTest, HasEveryFigureThatStatusJsonHasOfAWorker) {
  const Json task = Task("worker-0");
  for (const auto* const figures : {&WorkerFigures(), &TrainingFigures()}) {
    for (const Figure& figure : *figures) {
      const std::string& key = figure.options().status();
      if (key.empty()) continue;
      const Json::json_pointer place("/" + absl::StrReplaceAll(key, {{".", "/"}}));
      EXPECT_EQ(task.value(place, Json()), Worker(0).value(place, Json("none"))) << key;
    }
  }
}

TEST_F(ClusterViewTest, SaysHowToShowFigures) {
  const Json figures = Cluster()["figures"];
  ASSERT_FALSE(figures.empty());
  EXPECT_EQ(figures[0], Json({{"key", "steps"},
                              {"label", "steps"},
                              {"unit", "steps"},
                              {"help", "Steps that the servers have acknowledged."}}));
  std::vector<std::string> keys;
  for (const Json& figure : figures) keys.push_back(figure["key"]);
  EXPECT_THAT(keys, IsSupersetOf({"steps", "examples", "staleness.max", "push_retries",
                                  "credit_wait_seconds"}));
}

TEST_F(ClusterViewTest, NothingStandsOutWhereAllAreAlike) {
  const Json cluster = Cluster();
  for (const Json& task : cluster["tasks"]) EXPECT_FALSE(task.contains("remarks")) << task;
}

TEST_F(ClusterViewTest, AStraggler) {
  Worker(1)["steps_per_second"] = 13.0;
  EXPECT_THAT(Remarks("worker-1"),
              ElementsAre("straggler: 0.5 of the median speed of the workers"));
  EXPECT_THAT(Remarks("worker-0"), IsEmpty());
  // One that is lost is no straggler.
  Worker(1)["state"] = "lost";
  EXPECT_THAT(Remarks("worker-1"), IsEmpty());
}

TEST_F(ClusterViewTest, AWorkerThatIsFarBehind) {
  Worker(0)["staleness"]["mean"] = 6.0;
  EXPECT_THAT(Remarks("worker-0"),
              ElementsAre("stale: mean staleness 6.0, the workers' median is 1.5"));
  EXPECT_THAT(Remarks("worker-1"), IsEmpty());
}

TEST_F(ClusterViewTest, AWorkerThatWaits) {
  Worker(2)["step_seconds"] = {
      {"input", 0.05}, {"pull", 0.005}, {"compute", 0.04}, {"push", 0.005}};
  EXPECT_THAT(Remarks("worker-2"), ElementsAre("waiting: waits for 60% of its step"));
}

TEST_F(ClusterViewTest, SkewOfServers) {
  Server(0)["value_bytes"] = 5'000'000;
  Server(1)["pushed_bytes_per_second"] = 9e7;
  EXPECT_THAT(Remarks("ps-0"), ElementsAre("skew: 1.6 times the servers' mean bytes"));
  EXPECT_THAT(Remarks("ps-1"), ElementsAre("skew: 1.6 times the servers' mean traffic"));
}

// A server may well hold more than a worker's shard.
TEST_F(ClusterViewTest, ShardsOfWorkersAreComparedWithEachOther) {
  Server(0)["value_bytes"] = 5'000'000;
  Server(1)["host"] = "worker-1";
  EXPECT_THAT(Remarks("ps-0"), IsEmpty());
  EXPECT_THAT(Remarks("ps-1"), IsEmpty());
  EXPECT_EQ(Task("ps-1")["host"], "worker-1");
  Server(0)["host"] = "worker-0";
  EXPECT_THAT(Remarks("ps-0"), ElementsAre("skew: 1.6 times the shards' mean bytes"));
}

TEST_F(ClusterViewTest, TellsOfTables) {
  EXPECT_FALSE(Cluster().contains("tables"));
  const Json users = {
      {"name", "users"},
      {"rows", 40},
      {"bytes", 2000},
      {"refused_rows", 0},
      {"balance", 1.5},
      {"expired_rows", 3},
      {"looked_up", 10},
      {"looked_up_absent", 1},
      {"row_ids", {{"all", 30}, {"distinct", 10}}},
      {"hottest", Json::array({{{"id", "18446744073709551615"}, {"pushes", 640}}})}};
  data_.status["tables"] = Json::array({users, {{"rows", 1}}, 7});
  data_.status["tables"][0]["unknown"] = 1;
  data_.status["tables"][0]["hottest"].push_back({{"pushes", 1}});
  EXPECT_EQ(Cluster()["tables"], Json::array({users}));
}

TEST_F(ClusterViewTest, TellsWhatEachServerHasOfATable) {
  data_.status["tables"] = Json::array({{{"name", "users"}, {"rows", 40}}});
  data_.status["servers"][0]["tables"] = Json::array(
      {{{"name", "items"}, {"rows", 3}}, {{"name", "users"}, {"rows", 30}, {"bytes", 9}}});
  data_.status["servers"][1]["tables"] =
      Json::array({7, {{"name", 7}}, {{"name", "users"}, {"rows", "10"}}});
  data_.status["servers"].push_back(7);
  data_.model = *ParseRunModel(
      R"(model {
           features { name: "user" id {} }
           tables { name: "users" dim: 16 }
           layers { name: "vector" inputs: "user" embedding { table: "users" } }
           layers { dense { units: 1 } }
           loss { kind: SIGMOID_CROSS_ENTROPY }
         })",
      "test");
  EXPECT_EQ(
      Cluster()["tables"],
      Json::array(
          {{{"name", "users"},
            {"rows", 40},
            {"dim", 16},
            {"servers", {{{"task", "ps-0"}, {"rows", 30}, {"bytes", 9}}, {{"task", "ps-1"}}}}}}));
}

TEST_F(ClusterViewTest, AChiefThatIsAwayIsDownSinceItsLastWord) {
  age_ = absl::Seconds(20);
  EXPECT_EQ(Cluster()["stale"], true);
  EXPECT_EQ(Task("chief-0")["state"], "down");
  EXPECT_EQ(Task("chief-0")["since"], 1.7e9);
  EXPECT_EQ(Task("worker-0")["state"], "alive");
}

TEST_F(ClusterViewTest, AfterTheJobAllHaveLeft) {
  done_ = true;
  Worker(1)["state"] = "lost";
  for (const char* task : {"chief-0", "ps-0", "worker-0", "evaluator-0"}) {
    EXPECT_EQ(Task(task)["state"], "left") << task;
  }
  EXPECT_EQ(Task("worker-1")["state"], "lost");
  EXPECT_EQ(Cluster()["stale"], false);
}

TEST_F(ClusterViewTest, BeforeThereIsAStatus) {
  data_.status = nullptr;
  Json cluster = Cluster();
  cluster.erase("figures");
  EXPECT_EQ(cluster, Json({{"run", "mnist"}, {"stale", false}, {"tasks", Json::array()}}));
}

TEST_F(ClusterViewTest, WhatMakesNoSenseIsLeftOut) {
  data_.status["members"] = {nullptr,
                             7,
                             "worker-0",
                             {{"task", "worker"}},
                             {{"task", "worker-x"}},
                             {{"task", "worker--1"}},
                             {{"task", "cook-1"}},
                             {{"task", 3}}};
  data_.status["servers"] = "none";
  data_.status["chief"] = {{"task", "chief-0"}, {"since", "yesterday"}, {"peer", {1, 2}}};
  EXPECT_EQ(Cluster()["tasks"],
            Json({{{"task", "chief-0"}, {"role", "chief"}, {"index", 0}, {"state", "alive"}}}));
}

TEST_F(ClusterViewTest, AHistogramThatDoesNotFitIsLeftOut) {
  Worker(0)["staleness"]["counts"] = {1, 2};
  EXPECT_EQ(Task("worker-0")["staleness"], Json({{"mean", 1.5}, {"max", 4}}));
}

TEST_F(ClusterViewTest, AChiefThatTrainsIsOneTaskWithAWorkersFigures) {
  Json chief = Worker(0);
  chief["task"] = "chief-0";
  chief["restarts"] = 9;
  data_.status["members"].push_back(chief);
  EXPECT_EQ(Cluster()["tasks"].size(), 7u);
  EXPECT_EQ(Task("chief-0")["steps"], 400);
  EXPECT_EQ(Task("chief-0")["restarts"], 1);
}

TEST_F(ClusterViewTest, AChiefThatTrainsIsComparedWithTheWorkers) {
  Json chief = Worker(0);
  chief["task"] = "chief-0";
  chief["steps_per_second"] = 13.0;
  data_.status["members"] = {chief, Worker(1), Json(Task("evaluator-0"))};
  data_.status["members"][1]["steps_per_second"] = 26.0;
  EXPECT_THAT(Remarks("chief-0"),
              ElementsAre("straggler: 0.67 of the median speed of the workers"));
  EXPECT_THAT(Remarks("worker-1"), IsEmpty());
}

}  // namespace
}  // namespace keelson
