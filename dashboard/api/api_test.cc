// The API's answers to files of the forms that the chief and the evaluator write.
#include "dashboard/api/api.h"

#include <gmock/gmock.h>

#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kEvents[] = "events.out.tfevents.1700000000.host";

using ApiTest = DashboardApiTest;

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

TEST_F(ApiTest, Runs) {
  EXPECT_EQ(Get("/runs")["runs"], Json({{{"id", "mnist"},
                                         {"name", "mnist"},
                                         {"model_dir", "/jobs/mnist"},
                                         {"live", true},
                                         {"state", "waiting"}}}));
  EXPECT_EQ(Get("/runs")["read_only"], true);
  EXPECT_EQ(Get("/runs")["time"], 1.7e9);
  EXPECT_FALSE(Get("/runs")["version"].get<std::string>().empty());
}

TEST_F(ApiTest, ARunOfWhichThereIsNothingYet) {
  const Json run = Get("/runs/mnist");
  EXPECT_EQ(run["state"], "waiting");
  EXPECT_EQ(run["state_text"], "nothing has been written yet");
  EXPECT_EQ(run["step"], 0);
  EXPECT_EQ(run["error"], "");
  EXPECT_EQ(run["metrics"], Json::array());
  EXPECT_THAT(Keys(run), ElementsAre("end_reason", "error", "live", "metrics", "model_dir", "name",
                                     "run", "snapshot", "state", "state_text", "step"));
  EXPECT_EQ(Get("/runs/mnist/series")["series"], Json::array());
  EXPECT_EQ(Get("/runs/mnist/snapshots")["snapshots"], Json::array());
  EXPECT_EQ(Get("/runs/mnist/cluster")["tasks"], Json::array());
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/placement")), "the placement is not known");
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/report")), "there is no report yet");
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/model")),
            "the model's configuration is not known");
}

TEST_F(ApiTest, ARunThatTrains) {
  files().Write("status.json", TrainingStatus().dump());
  files().Write("train_config.textproto", TinyConfigText());
  files().Append("eval/metrics.jsonl", EvaluationLine(800, 1.7e9 - 9, 0.2, 0.9) +
                                           EvaluationLine(1000, 1.7e9 - 5, 0.1, 0.8));
  files().CommitSnapshot(1000, 1);
  const Json run = Get("/runs/mnist");
  EXPECT_EQ(run["state"], "running");
  EXPECT_EQ(run["step"], 1200);
  EXPECT_EQ(run["max_steps"], 2000);
  EXPECT_EQ(run["mode"], "async");
  EXPECT_EQ(run["epoch"], 3.75);
  EXPECT_EQ(run["steps_per_epoch"], 320);
  EXPECT_EQ(run["loss"], 0.07);
  EXPECT_EQ(run["learning_rate"], 0.05);
  EXPECT_EQ(run["steps_per_second"], 78.0);
  EXPECT_EQ(run["examples_per_second"], 4992.0);
  EXPECT_EQ(run["staleness"], 1.5);
  EXPECT_EQ(run["eta_seconds"], 10.25);
  EXPECT_EQ(run["started"], 1.7e9 - 100);
  EXPECT_EQ(run["updated"], 1.7e9);
  EXPECT_EQ(run["best"],
            Json({{"metric", "accuracy"}, {"value", 0.9}, {"step", 800}, {"exists", false}}));
  EXPECT_EQ(run["metrics"], Json({{{"name", "accuracy"},
                                   {"higher_is_better", true},
                                   {"last", {{"step", 1000}, {"value", 0.8}}},
                                   {"best", {{"step", 800}, {"value", 0.9}}}},
                                  {{"name", "loss"},
                                   {"higher_is_better", false},
                                   {"last", {{"step", 1000}, {"value", 0.1}}},
                                   {"best", {{"step", 1000}, {"value", 0.1}}}}}));
  EXPECT_EQ(run["snapshot"]["step"], 1000);
  EXPECT_EQ(run["snapshot"]["write_seconds"], 0.02);
  EXPECT_EQ(run["snapshot"]["failures"], 0);
  EXPECT_GT(run["snapshot"]["bytes"], 0);
  EXPECT_EQ(run["task"], Json({{"kind", "classification"},
                               {"classes", {"no", "yes"}},
                               {"input_shape", {2}},
                               {"parameters", 6}}));
}

TEST_F(ApiTest, CalibrationIsBestAtOne) {
  for (const auto& [step, calibration] : std::map<int, double>{{100, 0.75}, {200, 1.125}}) {
    files().Append(
        "eval/metrics.jsonl",
        Json({{"step", step}, {"wall_time", 1.7e9}, {"calibration", calibration}}).dump() + "\n");
  }
  EXPECT_EQ(Get("/runs/mnist")["metrics"], Json::parse(R"([{"name": "calibration", "best_at": 1,
                             "last": {"step": 200, "value": 1.125},
                             "best": {"step": 200, "value": 1.125}}])"));
}

TEST_F(ApiTest, ARunWhoseChiefIsGoneHasNoRates) {
  files().Write("status.json", TrainingStatus().dump());
  clock_.Advance(absl::Minutes(3));
  const Json run = Get("/runs/mnist");
  EXPECT_EQ(run["state"], "stopped");
  EXPECT_EQ(run["step"], 1200);
  EXPECT_FALSE(run.contains("eta_seconds"));
  EXPECT_FALSE(run.contains("steps_per_second"));
  EXPECT_EQ(Get("/runs/mnist/cluster")["stale"], true);
}

TEST_F(ApiTest, ADamagedStatusLeavesTheLastWord) {
  files().Write("status.json", TrainingStatus().dump());
  Poll();
  files().Write("status.json", "{\"phase\": \"TRAI");
  Poll();
  const Json run = Get("/runs/mnist");
  EXPECT_EQ(run["state"], "running");
  EXPECT_EQ(run["step"], 1200);
  EXPECT_EQ(run["error"], "/jobs/mnist/status.json: expected an object of JSON");
  files().Write("status.json", TrainingStatus().dump());
  Poll();
  EXPECT_EQ(Get("/runs/mnist")["error"], "");
}

TEST_F(ApiTest, AStatusOfAnotherProgramsVersion) {
  files().Write("status.json", R"({"phase":"TRAINING","step":"many","time":1.7e9,"members":{},
                                   "servers":[1],"loss":null,"mode":7,"snapshot":[]})");
  const Json run = Get("/runs/mnist");
  EXPECT_EQ(run["state"], "running");
  EXPECT_EQ(run["step"], 0);
  EXPECT_FALSE(run.contains("mode"));
  EXPECT_EQ(Get("/runs/mnist/cluster")["tasks"].size(), 1u);
}

TEST_F(ApiTest, AStreamHasItsPosition) {
  Json status = TrainingStatus();
  const Json stream = {
      {"file", "part-2"}, {"done_records", 120}, {"known_records", 240}, {"ended", false}};
  status["stream"] = stream;
  files().Write("status.json", status.dump());
  EXPECT_EQ(Get("/runs/mnist")["stream"], stream);
  status["stream"] = {{"done_records", "many"}};
  files().Write("status.json", status.dump());
  Poll();
  EXPECT_FALSE(Get("/runs/mnist").contains("stream"));
}

TEST_F(ApiTest, ALossThatIsNotFiniteIsNull) {
  Json status = TrainingStatus();
  status["loss"] = nullptr;
  status.erase("learning_rate");
  files().Write("status.json", status.dump());
  const Json run = Get("/runs/mnist");
  ASSERT_TRUE(run.contains("loss"));
  EXPECT_TRUE(run["loss"].is_null());
  EXPECT_FALSE(run.contains("learning_rate"));
}

TEST_F(ApiTest, IntegersBeyond64BitsAreNone) {
  Json status = TrainingStatus();
  status["max_steps"] = std::numeric_limits<uint64_t>::max();
  status["servers"][0]["clients"] = uint64_t{1} << 63;
  files().Write("status.json", status.dump());
  EXPECT_FALSE(Get("/runs/mnist").contains("max_steps"));
  EXPECT_EQ(Get("/runs/mnist/cluster")["tasks"][1]["clients"], 9223372036854775808.0);
}

TEST_F(ApiTest, TheBestIsOfTheMetricThatTheJobJudgesBy) {
  const std::string config = TinyConfigText();
  const auto best = [&](const std::string& evaluation) {
    files().Write("train_config.textproto", config + evaluation);
    Poll();
    return Get("/runs/mnist")["best"]["metric"];
  };
  files().Append("eval/metrics.jsonl", EvaluationLine(100, 1.7e9, 0.5, 0.9));
  EXPECT_EQ(best(""), "accuracy");
  const std::string exporter = "exporters { best { metric: 'accuracy' } } ";
  EXPECT_EQ(best("evaluation { early_stopping { patience: 3 } " + exporter + "}"), "loss");
  EXPECT_EQ(best("evaluation { early_stopping { metric: 'auc' patience: 3 } " + exporter + "}"),
            "accuracy");
  EXPECT_EQ(best("evaluation { exporters { latest {} } exporters { best { metric: 'loss' } } }"),
            "loss");
  EXPECT_EQ(best("evaluation { early_stopping { metric: 'auc' patience: 3 } }"), "accuracy");
}

TEST_F(ApiTest, AnEvaluationThatIsToldAgainReplacesTheFirst) {
  files().Append("eval/metrics.jsonl",
                 EvaluationLine(100, 1.7e9, 0.1, 0.9) + EvaluationLine(200, 1.7e9, 0.5, 0.8));
  EXPECT_EQ(Get("/runs/mnist")["best"]["step"], 100);
  files().Append("eval/metrics.jsonl", EvaluationLine(100, 1.7e9 + 1, 0.9, 0.1));
  Poll();
  const Json run = Get("/runs/mnist");
  EXPECT_EQ(run["best"]["step"], 200);
  EXPECT_EQ(run["metrics"][1]["best"], Json({{"step", 200}, {"value", 0.5}}));
  EXPECT_EQ(run["metrics"][1]["last"], Json({{"step", 200}, {"value", 0.5}}));
}

TEST_F(ApiTest, AnOldRunWithoutAStatus) {
  files().Append("eval/metrics.jsonl", EvaluationLine(500, 1.6e9, 0.5, 0.9));
  files().Write("DONE", R"({"config_hash":"0000000000000001","step":500})");
  const Json run = Get("/runs/mnist");
  EXPECT_EQ(run["state"], "done");
  EXPECT_EQ(run["step"], 500);
}

TEST_F(ApiTest, TheOwnConfigurationUntilTheChiefHasWrittenIt) {
  run_options_.config_text = TinyConfigText();
  EXPECT_EQ(Get("/runs/mnist/model")["name"], "tiny");
  files().Write("train_config.textproto", "model { nonsense }");
  Poll();
  EXPECT_THAT(Get("/runs/mnist")["error"].get<std::string>(),
              HasSubstr("/jobs/mnist/train_config.textproto"));
  Error(404, Ask("GET", "/api/v1/runs/mnist/model"));
}

TEST_F(ApiTest, Model) {
  files().Write("train_config.textproto", TinyConfigText());
  const Json variables = {{{"name", "scores/kernel"}, {"shape", {2, 2}}, {"update", "optimizer"}},
                          {{"name", "scores/bias"}, {"shape", {2}}, {"update", "optimizer"}}};
  EXPECT_EQ(Get("/runs/mnist/model"),
            Json({{"run", "mnist"},
                  {"name", "tiny"},
                  {"parameters", 6},
                  {"operations", 10},
                  {"features", {{{"name", "features"}, {"kind", "numbers"}, {"shape", {2}}}}},
                  {"layers",
                   {{{"name", "scores"},
                     {"kind", "dense"},
                     {"settings", "dense { units: 2 }"},
                     {"inputs", {"features"}},
                     {"output_shape", {2}},
                     {"parameters", 6},
                     {"operations", 10},
                     {"variables", variables}}}},
                  {"tables", Json::array()},
                  {"losses",
                   {{{"kind", "SOFTMAX_CROSS_ENTROPY"},
                     {"inputs", {"scores"}},
                     {"label", "label"},
                     {"weight", 1.0}}}},
                  {"formulas", {{"dense", "y = x W + b; W is [inputs, units]."}}},
                  {"config", TinyConfigText()}}));
}

TEST_F(ApiTest, AScriptsModelHasModulesAndPredictsNothing) {
  const std::string text =
      "model { name: 'net' external {\n"
      "  variables { name: 'conv.weight' shape: 4 shape: 2 }\n"
      "  variables { name: 'conv.bias' shape: 4 }\n"
      "  variables { name: 'norm.running_mean' shape: 4 average_decay: 0.9 }\n"
      "  variables { name: 'scale' }\n"
      "  variables { name: 'conv.scale' average_decay: 0.9 } } }\n"
      "optimizer { groups { variables: 'conv.bias' frozen: true } }\n";
  files().Write("train_config.textproto", text);
  EXPECT_EQ(Get("/runs/mnist")["task"], Json({{"parameters", 18}}));
  const Json model = Get("/runs/mnist/model");
  EXPECT_EQ(model["name"], "net");
  EXPECT_EQ(model["parameters"], 18);
  EXPECT_EQ(model["losses"], Json::array());
  const auto module = [](const char* name, int parameters, const Json& variables) {
    return Json({{"name", name},
                 {"kind", "module"},
                 {"inputs", Json::array()},
                 {"parameters", parameters},
                 {"operations", 0},
                 {"variables", variables}});
  };
  EXPECT_EQ(
      model["layers"],
      Json::array(
          {module("conv", 13,
                  {{{"name", "conv.weight"}, {"shape", {4, 2}}, {"update", "optimizer"}},
                   {{"name", "conv.bias"}, {"shape", {4}}, {"update", "frozen"}},
                   {{"name", "conv.scale"}, {"shape", Json::array()}, {"update", "average"}}}),
           module("norm", 4,
                  Json::array(
                      {{{"name", "norm.running_mean"}, {"shape", {4}}, {"update", "average"}}})),
           module("", 1,
                  Json::array(
                      {{{"name", "scale"}, {"shape", Json::array()}, {"update", "optimizer"}}}))}));
  for (const char* call : {"predict", "nearest"}) {
    EXPECT_EQ(Error(404, Ask("POST", absl::StrCat("/api/v1/runs/mnist/", call), "{}")),
              "the model is a script's: nothing is predicted here");
  }
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/form")),
            "the model is a script's: it has no form here");
}

TEST_F(ApiTest, AModelOfIdsHasThemInPlaceOfShapes) {
  files().Write("train_config.textproto", IdConfigText());
  const Json model = Get("/runs/mnist/model");
  EXPECT_EQ(model["features"],
            Json({{{"name", "user"}, {"kind", "id"}, {"ids", 9}},
                  {{"name", "seen"}, {"kind", "bag"}, {"ids", 8}, {"weighted", true}}}));
  EXPECT_EQ(model["losses"][0]["label"], "clicked");
  EXPECT_FALSE(Get("/runs/mnist")["task"].contains("input_shape"));
}

TEST_F(ApiTest, AModelOfTablesNamesThemWithTheirLayers) {
  files().Write("train_config.textproto", R"pb(
    model {
      features {
        name: "user"
        id {}
      }
      features {
        name: "seen"
        bag {}
      }
      tables { name: "people" dim: 4 }
      layers {
        name: "u"
        inputs: "user"
        embedding { table: "people" }
      }
      layers {
        name: "s"
        inputs: "seen"
        embedding_bag { table: "people" }
      }
      layers {
        dot {}
        inputs: "u"
        inputs: "s"
      }
      loss { kind: SIGMOID_CROSS_ENTROPY }
    })pb");
  const Json model = Get("/runs/mnist/model");
  EXPECT_EQ(model["tables"], Json({{{"name", "people"}, {"dim", 4}}}));
  EXPECT_EQ(model["features"], Json({{{"name", "user"}, {"kind", "id"}},
                                     {{"name", "seen"}, {"kind", "bag"}, {"weighted", false}}}));
  EXPECT_EQ(model["layers"][0]["table"], "people");
  EXPECT_EQ(model["layers"][1]["table"], "people");
  EXPECT_FALSE(model["layers"][2].contains("table"));
}

TEST_F(ApiTest, WhichVariablesOfAModelAreFrozen) {
  files().Write("train_config.textproto", IdConfigText());
  const Json layers = Get("/runs/mnist/model")["layers"];
  EXPECT_EQ(layers[0]["variables"],
            Json({{{"name", "a/embeddings"}, {"shape", {9, 1}}, {"update", "frozen"}}}));
  EXPECT_EQ(layers[1]["variables"][0]["update"], "optimizer");
  EXPECT_EQ(layers[2]["variables"], Json::array());
  EXPECT_EQ(layers[2]["inputs"], Json({"a", "b"}));
}

TEST_F(ApiTest, ALayerNamesTheOneWhoseVariablesItShares) {
  files().Write("train_config.textproto", R"(model {
                  features { name: "left" dense { shape: 2 } }
                  features { name: "right" dense { shape: 2 } }
                  layers { name: "a" inputs: "left" dense { units: 3 } }
                  layers { name: "b" inputs: "right" dense { units: 3 } variables_of: "a" }
                  layers { name: "click" dot {} inputs: "a" inputs: "b" }
                  layers { name: "both" concat {} inputs: "a" inputs: "b" }
                  layers { batch_norm {} }
                  layers { name: "spending" dense { units: 1 } }
                  losses { kind: SIGMOID_CROSS_ENTROPY scores: "click" label: "clicked" }
                  losses { kind: HUBER delta: 2 scores: "spending" label: "spent" weight: 0.5
                           weight_label: "trust" }
                })");
  const Json model = Get("/runs/mnist/model");
  EXPECT_FALSE(model["layers"][0].contains("variables_of"));
  EXPECT_EQ(model["layers"][1]["variables_of"], "a");
  EXPECT_EQ(model["layers"][1]["parameters"], 0);
  EXPECT_EQ(model["layers"][1]["variables"][0]["name"], "a/kernel");
  EXPECT_EQ(model["layers"][4]["variables"][2]["update"], "average");
  EXPECT_EQ(model["losses"], Json({{{"kind", "SIGMOID_CROSS_ENTROPY"},
                                    {"inputs", {"click"}},
                                    {"label", "clicked"},
                                    {"weight", 1.0}},
                                   {{"kind", "HUBER"},
                                    {"inputs", {"spending"}},
                                    {"label", "spent"},
                                    {"weight", 0.5},
                                    {"delta", 2.0},
                                    {"record_weights", "trust"}}}));
}

TEST_F(ApiTest, ALossNamesItsQueriesAndItems) {
  files().Write("train_config.textproto", R"(model {
                  input_shape: 2
                  layers { name: "user" dense { units: 3 } }
                  layers { name: "item" inputs: "features" dense { units: 3 } }
                  loss { kind: IN_BATCH_SOFTMAX queries: "user" items: "item" temperature: 0.5
                         log_probability_label: "p" }
                })");
  EXPECT_EQ(Get("/runs/mnist/model")["losses"], Json({{{"kind", "IN_BATCH_SOFTMAX"},
                                                       {"inputs", {"user", "item"}},
                                                       {"label", "label"},
                                                       {"weight", 1.0},
                                                       {"temperature", 0.5},
                                                       {"log_probability_label", "p"}}}));
  EXPECT_EQ(Get("/runs/mnist")["task"]["kind"], "retrieval");
}

TEST_F(ApiTest, Placement) {
  const Json placement = {
      {"balance", 1.0},
      {"shards", {{{"task", "ps-0"}, {"bytes", 24}}}},
      {"variables",
       {{{"name", "scores/kernel"},
         {"shape", {2, 2}},
         {"bytes", 16},
         {"partitions", {{{"shard", 0}, {"row_begin", 0}, {"row_end", 2}, {"bytes", 16}}}}}}}};
  files().Write("placement.json", placement.dump());
  Json answered = Get("/runs/mnist/placement");
  EXPECT_EQ(answered["run"], "mnist");
  answered.erase("run");
  EXPECT_EQ(answered, placement);
}

TEST_F(ApiTest, APlacementOfAnotherFormIsNotShown) {
  files().Write("placement.json", R"({"balance":1,"shards":5,"variables":[]})");
  const std::string trouble =
      "/jobs/mnist/placement.json: shards: expected a list of {task, bytes}";
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/placement")), trouble);
  EXPECT_EQ(Get("/runs/mnist")["error"], trouble);
  files().Write("placement.json", R"({"balance":1,"shards":[],"variables":[]})");
  Poll();
  EXPECT_EQ(Get("/runs/mnist/placement")["shards"], Json::array());
  EXPECT_EQ(Get("/runs/mnist")["error"], "");
}

TEST_F(ApiTest, ListOfSeries) {
  files().Append(kEvents,
                 ScalarRecord("loss", 1, 1.7e9, 0.5f) + ScalarRecord("loss", 2, 1.7e9 + 1, 0.25f));
  files().Append(std::string("tasks/") + kEvents,
                 ScalarRecord("worker-0/steps_per_second", 2, 1.7e9, 40));
  files().Append("eval/metrics.jsonl", EvaluationLine(2, 1.7e9, 0.5, 0.75));
  const auto entry = [](const char* name, int points, double time, double value) {
    return Json({{"name", name},
                 {"points", points},
                 {"last", {{"step", 2}, {"time", time}, {"value", value}}}});
  };
  EXPECT_EQ(Get("/runs/mnist/series"),
            Json({{"run", "mnist"},
                  {"series",
                   {entry("eval/accuracy", 1, 1.7e9, 0.75), entry("eval/loss", 1, 1.7e9, 0.5),
                    entry("task/worker-0/steps_per_second", 1, 1.7e9, 40),
                    entry("train/loss", 2, 1.7e9 + 1, 0.25)}}}));
}

TEST_F(ApiTest, DataOfSeries) {
  for (int step = 1; step <= 4; ++step) {
    files().Append(kEvents, ScalarRecord("loss", step, 1.7e9 + step, step == 3 ? NAN : 0.5f));
  }
  EXPECT_EQ(Get("/runs/mnist/series/data?name=train/loss&name=nothing"),
            Json({{"run", "mnist"},
                  {"x", "step"},
                  {"series",
                   {{{"name", "train/loss"},
                     {"total", 4},
                     {"step", {1, 2, 3, 4}},
                     {"time", {1.7e9 + 1, 1.7e9 + 2, 1.7e9 + 3, 1.7e9 + 4}},
                     {"value", {0.5, 0.5, nullptr, 0.5}}}}}}));
  const Json part =
      Get("/runs/mnist/series/data?name=train%2Floss&x=time&from=1700000002&to=1700000003");
  EXPECT_EQ(part["x"], "time");
  EXPECT_EQ(part["series"][0]["step"], Json({2, 3}));
  EXPECT_EQ(part["series"][0]["total"], 2);
}

TEST_F(ApiTest, LongSeriesAreThinned) {
  std::string records;
  for (int step = 0; step < 5000; ++step) {
    records += ScalarRecord("loss", step, 1.7e9 + step, step == 3210 ? 9.0f : 1.0f);
  }
  files().Append(kEvents, records);
  const Json series = Get("/runs/mnist/series/data?name=train/loss&points=100")["series"][0];
  EXPECT_EQ(series["total"], 5000);
  EXPECT_LE(series["step"].size(), 100u);
  EXPECT_THAT(series["step"].get<std::vector<int>>(), testing::IsSupersetOf({0, 3210, 4999}));
  // As many as there are by default.
  EXPECT_LE(Get("/runs/mnist/series/data?name=train/loss")["series"][0]["step"].size(), 1000u);
}

TEST_F(ApiTest, ParametersOfSeriesThatMakeNoSense) {
  const std::string path = "/api/v1/runs/mnist/series/data?name=a";
  EXPECT_EQ(Error(400, Ask("GET", path + "&points=1")), "points: expected 2 to 20000, found '1'");
  EXPECT_EQ(Error(400, Ask("GET", path + "&points=x")), "points: expected 2 to 20000, found 'x'");
  EXPECT_EQ(Error(400, Ask("GET", path + "&x=epoch")), "x: expected step or time");
  EXPECT_EQ(Error(400, Ask("GET", path + "&from=nan")), "from: expected a number, found 'nan'");
  EXPECT_EQ(Error(400, Ask("GET", path + "&to=1e999")), "to: expected a number, found '1e999'");
  EXPECT_EQ(Error(400, Ask("GET", "/api/v1/runs/mnist/series/data")),
            "name: expected 1 to 64, found 0");
  std::string many = "/api/v1/runs/mnist/series/data?";
  for (int i = 0; i < 65; ++i) many += "name=a&";
  EXPECT_EQ(Error(400, Ask("GET", many)), "name: expected 1 to 64, found 65");
}

TEST_F(ApiTest, SeriesAsAFile) {
  files().Append(kEvents, ScalarRecord("a,\"b\"", 7, 1.7e9 + 0.5, 0.1f) +
                              ScalarRecord("loss", 8, 1.7e9 + 0.25, INFINITY));
  const HttpResponse response =
      Ask("GET", "/api/v1/runs/mnist/series.csv?name=train/a,%22b%22&name=train/loss&name=none");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/csv; charset=utf-8");
  EXPECT_THAT(response.headers,
              ElementsAre(testing::Pair("Content-Disposition",
                                        "attachment; filename=\"mnist-series.csv\"")));
  EXPECT_EQ(response.body,
            "series,step,time,value\n"
            "\"train/a,\"\"b\"\"\",7,1700000000.5,0.1\n"
            "train/loss,8,1700000000.25,nan\n");
}

TEST_F(ApiTest, Snapshots) {
  files().CommitSnapshot(100, 1, /*keep_max=*/2);
  Poll();
  files().CommitSnapshot(200, 2, /*keep_max=*/2);
  files().CommitSnapshot(300, 3, /*keep_max=*/2);
  files().Append("eval/metrics.jsonl",
                 EvaluationLine(100, 1.7e9, 0.5, 0.9) + EvaluationLine(200, 1.7e9 + 1, 0.4, 0.7));
  files().Write("export/best/100/saved_model.pb", "");
  files().Write("export/latest/200/saved_model.pb", "");
  files().Write("export/latest/temp-1/saved_model.pb", "");
  Poll();
  const Json list = Get("/runs/mnist/snapshots")["snapshots"];
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]["step"], 300);
  EXPECT_EQ(list[0]["exists"], true);
  EXPECT_FALSE(list[0].contains("metrics"));
  EXPECT_EQ(list[0]["exported"], Json::array());
  EXPECT_GT(list[0]["bytes"], 0);
  EXPECT_EQ(list[1]["step"], 200);
  EXPECT_EQ(list[1]["best"], Json({"loss"}));
  EXPECT_EQ(list[1]["exported"], Json({"latest"}));
  EXPECT_EQ(list[1]["metrics"], Json({{"accuracy", 0.7}, {"loss", 0.4}}));
  EXPECT_EQ(list[1]["evaluated"], 1.7e9 + 1);
  EXPECT_EQ(list[1]["evaluation_seconds"], 0.5);
  EXPECT_EQ(list[1]["examples"], 100);
  EXPECT_EQ(list[2]["step"], 100);
  EXPECT_EQ(list[2]["exists"], false);
  EXPECT_EQ(list[2]["best"], Json({"accuracy"}));
  EXPECT_EQ(list[2]["exported"], Json({"best"}));
}

TEST_F(ApiTest, OfManySnapshotsTheNewestAndThoseThatMatter) {
  constexpr int64_t kEvaluations = 1200;
  std::string lines;
  for (int64_t step = 1; step <= kEvaluations; ++step) {
    lines += EvaluationLine(step, 1.7e9, step == 7 ? 0.1 : 0.5, step == 9 ? 0.9 : 0.5);
  }
  files().Append("eval/metrics.jsonl", lines);
  files().Write("export/latest/11/saved_model.pb", "");
  files().CommitSnapshot(13, 1);
  const Json answer = Get("/runs/mnist/snapshots");
  EXPECT_EQ(answer["total"], kEvaluations);
  const Json& list = answer["snapshots"];
  ASSERT_EQ(list.size(), 504u);
  EXPECT_EQ(list[0]["step"], kEvaluations);
  EXPECT_EQ(list[499]["step"], kEvaluations - 499);
  std::vector<int64_t> older;
  for (size_t i = 500; i < list.size(); ++i) older.push_back(list[i]["step"]);
  EXPECT_THAT(older, ElementsAre(13, 11, 9, 7));
}

TEST_F(ApiTest, Report) {
  files().Write("eval/reports/100.json",
                R"({"step":100,"time":1.7e9,"kind":"classification","wrong":[]})");
  files().Write("eval/reports/200.json",
                R"({"step":200,"time":1.7e9,"kind":"binary","auc":0.5,"wrong":[]})");
  files().Write("eval/reports/x.json", "{}");
  const Json newest = Get("/runs/mnist/report");
  EXPECT_EQ(newest["steps"], Json({100, 200}));
  EXPECT_EQ(newest["step"], 200);
  EXPECT_EQ(newest["kind"], "binary");
  EXPECT_EQ(newest["auc"], 0.5);
  EXPECT_EQ(newest["run"], "mnist");
  EXPECT_EQ(Get("/runs/mnist/report?step=100")["kind"], "classification");
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/report?step=7")),
            "there is no report of step 7");
  Error(400, Ask("GET", "/api/v1/runs/mnist/report?step=../../etc/passwd"));
}

TEST_F(ApiTest, ADamagedReport) {
  files().Write("eval/reports/100.json", "[");
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/report")),
            "the report of step 100 cannot be read: it is no object of JSON");
  Poll();
  files().Remove("eval/reports/100.json");
  EXPECT_THAT(
      Error(404, Ask("GET", "/api/v1/runs/mnist/report")),
      HasSubstr(
          "the report of step 100 cannot be read: cannot open /jobs/mnist/eval/reports/100.json"));
}

TEST_F(ApiTest, AReportOfAnotherFormIsNotShown) {
  files().Write("eval/reports/100.json", R"({"kind":"binary","wrong":[],"roc":[[0]]})");
  EXPECT_EQ(Error(404, Ask("GET", "/api/v1/runs/mnist/report")),
            "the report of step 100 cannot be shown: roc: expected a list of pairs of numbers");
}

TEST_F(ApiTest, SeveralRuns) {
  run_options_.live = false;
  run_options_.runs = {"/old", "/other/mnist"};
  files().Write("status.json", TrainingStatus().dump());
  for (const char* dir : {"/old/a", "/old/b", "/other/mnist"}) {
    RunFiles(&memory_, dir).Append("eval/metrics.jsonl", EvaluationLine(1, 1.6e9, 0.5, 0.9));
  }
  std::vector<std::string> ids;
  const Json runs = Get("/runs");
  for (const Json& run : runs["runs"]) {
    ids.push_back(run["id"]);
    EXPECT_EQ(run["live"], false);
  }
  EXPECT_THAT(ids, ElementsAre("mnist", "mnist-2", "a", "b"));
  EXPECT_EQ(Get("/runs/mnist-2")["model_dir"], "/other/mnist");
  EXPECT_EQ(Get("/runs/b/snapshots")["snapshots"].size(), 1u);
}

TEST_F(ApiTest, TextOfARunIsToldAsItIs) {
  Json status = TrainingStatus();
  status["phase"] = "FAILED";
  status["error"] = "<script>alert(1)</script>\n\"\\";
  files().Write("status.json", status.dump());
  files().Append(kEvents, ScalarRecord("</script>", 1, 1.7e9, 1));
  EXPECT_EQ(Get("/runs/mnist")["error"], "<script>alert(1)</script>\n\"\\");
  EXPECT_EQ(Get("/runs/mnist/series")["series"][0]["name"], "train/</script>");
}

TEST_F(ApiTest, PathsAndMethodsThatThereAreNot) {
  for (const char* path :
       {"/", "/api", "/api/v1", "/api/v1/", "/api/v1/runs/", "/api/v2/runs", "/api/v1/runs/mnist/",
        "/api/v1/runs/mnist/nothing", "/api/v1/runs/mnist/series/", "/api/v1/runs/%2e%2e/model",
        "/api/v1/runs/mnist%2F..%2Fx", "/api/v1/runs/other", "//api/v1/runs"}) {
    Error(404, Ask("GET", path));
  }
  EXPECT_EQ(Error(405, Ask("POST", "/api/v1/runs")), "expected GET, HEAD");
  EXPECT_EQ(Error(405, Ask("POST", "/api/v1/events")), "expected GET, HEAD");
  EXPECT_EQ(Error(405, Ask("POST", "/api/v1/runs/mnist")), "expected GET, HEAD");
  const HttpResponse response = Ask("GET", "/api/v1/runs/mnist/predict");
  EXPECT_EQ(Error(405, response), "expected POST");
  EXPECT_THAT(response.headers, ElementsAre(testing::Pair("Allow", "POST")));
  EXPECT_EQ(Ask("HEAD", "/api/v1/runs").status, 200);
}

}  // namespace
}  // namespace keelson
