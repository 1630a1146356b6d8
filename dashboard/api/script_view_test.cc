#include "dashboard/api/script_view.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/base/stop_signal.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kExternal[] =
    R"(model { external { variables { name: "weight" shape: [2, 2] } } }
       data { external { train_records: 5 } })";

// Tells what it was asked.
class FakeScript : public ScriptModel {
 public:
  std::optional<ScriptForm> form() const override { return form_; }
  absl::StatusOr<ScriptPrediction> Predict(const ScriptInput& input) override {
    asked_ = input;
    if (on_predict_ != nullptr) on_predict_();
    return answer_;
  }

  std::optional<ScriptForm> form_ = ScriptForm{"classification", {"no", "yes"}, {1, 2}, {}};
  absl::StatusOr<ScriptPrediction> answer_ = ScriptPrediction{7, {0.25f, 0.75f}, 0.5};
  ScriptInput asked_;
  std::function<void()> on_predict_;
};

class ScriptViewTest : public DashboardApiTest {
 protected:
  ScriptViewTest() {
    files().Write("train_config.textproto", kExternal);
    run_options_.script = &script_;
  }
  HttpResponse Post(const std::string& body) {
    return Ask("POST", "/api/v1/runs/mnist/predict", body);
  }

  FakeScript script_;
};

TEST_F(ScriptViewTest, AClassOfNumbers) {
  const HttpResponse response = Post(R"({"features": [0.5, 1]})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(*ParseJson(response.body), Json({{"run", "mnist"},
                                             {"step", 7},
                                             {"kind", "classification"},
                                             {"predicted", 1},
                                             {"class", "yes"},
                                             {"probabilities", {0.25, 0.75}},
                                             {"seconds", 0.5}}));
  EXPECT_THAT(script_.asked_.numbers, ElementsAre(0.5f, 1.0f));
  const Json task = Get("/runs/mnist")["task"];
  EXPECT_EQ(task["kind"], "classification");
  EXPECT_EQ(task["input_shape"], Json({1, 2}));
  EXPECT_EQ(task["classes"], Json({"no", "yes"}));
  EXPECT_EQ(Get("/runs/mnist/form"), Json({{"run", "mnist"}, {"examples", Json::array()}}));
}

TEST_F(ScriptViewTest, ABinaryLabelAndARegression) {
  script_.form_ = ScriptForm{"binary", {}, {2}, {}};
  script_.answer_ = ScriptPrediction{7, {0.25f}, 0};
  Json json = *ParseJson(Post(R"({"features": [0.5, 1]})").body);
  EXPECT_EQ(json["probabilities"], Json({0.75, 0.25}));
  EXPECT_EQ(json["predicted"], 0);
  EXPECT_FALSE(json.contains("class"));
  script_.form_->kind = "regression";
  json = *ParseJson(Post(R"({"features": [0.5, 1]})").body);
  EXPECT_EQ(json["prediction"], 0.25);
}

TEST_F(ScriptViewTest, Columns) {
  script_.form_ =
      ScriptForm{"regression", {}, {}, {{"age", "number"}, {"rooms", "integer"}, {"city", "text"}}};
  script_.answer_ = ScriptPrediction{7, {3}, 0};
  EXPECT_EQ(Get("/runs/mnist/form")["columns"][1],
            Json({{"name", "rooms"}, {"kind", "integer"}, {"list", false}}));
  EXPECT_FALSE(Get("/runs/mnist")["task"].contains("input_shape"));
  EXPECT_EQ(Post(R"({"columns": {"age": "39.5", "rooms": 3}})").status, 200);
  EXPECT_EQ(*ParseJson(script_.asked_.columns),
            Json({{"age", 39.5}, {"rooms", 3}, {"city", nullptr}}));
  EXPECT_EQ(Post(R"({"columns": {"age": null, "rooms": "4", "city": "Oslo"}})").status, 200);
  EXPECT_EQ(*ParseJson(script_.asked_.columns),
            Json({{"age", nullptr}, {"rooms", 4}, {"city", "Oslo"}}));
}

TEST_F(ScriptViewTest, WhatDoesNotFitTheForm) {
  EXPECT_EQ(Error(400, Post(R"({"features": [0.5]})")),
            "features: expected 2 numbers for [1, 2], found 1");
  script_.form_ = ScriptForm{"regression", {}, {}, {{"age", "number"}, {"rooms", "integer"}}};
  EXPECT_EQ(Error(400, Post(R"({"features": [0.5]})")),
            "columns: expected an object with a value for each column, found none");
  EXPECT_EQ(Error(400, Post(R"({"columns": {"age": "old"}})")),
            "columns.age: expected a number, found \"old\"");
  EXPECT_EQ(Error(400, Post(R"({"columns": {"rooms": 2.5}})")),
            "columns.rooms: expected a whole number, found 2.5");
  EXPECT_EQ(Error(400, Post(R"({"columns": {"city": "Oslo"}})")),
            "columns.city: expected a column of the script's, found another one");
  script_.form_->columns = {{"text", "text"}};
  EXPECT_EQ(Error(400, Post(R"({"columns": {"text": 1}})")),
            "columns.text: expected a text, found 1");
  EXPECT_THAT(Error(400, Post(R"({"columns": {"text": ")" + std::string(32768, 'a') + R"("}})")),
              HasSubstr("columns: expected at most 32768 bytes, found 327"));
}

TEST_F(ScriptViewTest, WhatTheScriptCannotDo) {
  script_.answer_ = absl::UnavailableError("the script: ValueError: no such city");
  EXPECT_EQ(Error(503, Post(R"({"features": [0.5, 1]})")), "the script: ValueError: no such city");
  script_.form_ = std::nullopt;
  EXPECT_EQ(Error(404, Post(R"({"features": [0.5, 1]})")),
            "the model is a script's: nothing is predicted here");
  EXPECT_FALSE(Get("/runs/mnist")["task"].contains("kind"));
  EXPECT_EQ(Ask("GET", "/api/v1/runs/mnist/form").status, 404);
}

TEST_F(ScriptViewTest, OneAtATime) {
  StopSignal asked, go;
  script_.on_predict_ = [&] {
    asked.Raise();
    go.Wait();
  };
  Poll();
  std::thread first([&] { EXPECT_EQ(Post(R"({"features": [0.5, 1]})").status, 200); });
  asked.Wait();
  EXPECT_EQ(Error(429, Post(R"({"features": [0.5, 1]})")),
            "another prediction is under way, try again");
  go.Raise();
  first.join();
}

}  // namespace
}  // namespace keelson
