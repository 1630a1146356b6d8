#include "dashboard/api/predictions.h"

#include <gmock/gmock.h>

#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/stop_signal.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Tells what it was asked.
class RecordedPredictor : public PredictorOfNoItems {
 public:
  explicit RecordedPredictor(absl::StatusOr<Prediction> answer) : answer_(std::move(answer)) {}

  absl::StatusOr<Prediction> Predict(const v1::TrainConfig& config, Batch example) override {
    EXPECT_EQ(config.model().name(), "tiny");
    EXPECT_THAT(example.features.front().numbers.span(), ElementsAre(0.5f, 1.0f));
    return answer_;
  }

 private:
  const absl::StatusOr<Prediction> answer_;
};

class PredictTest : public DashboardApiTest {
 protected:
  PredictTest() {
    api_options_.new_predictor = [this](const std::string& model_dir) {
      made_.push_back(model_dir);
      return std::make_unique<RecordedPredictor>(answer_);
    };
    files().Write("train_config.textproto", TinyConfigText());
  }
  HttpResponse Post(const std::string& body, const std::string& run = "mnist") {
    return Ask("POST", absl::StrCat("/api/v1/runs/", run, "/predict"), body);
  }

  absl::StatusOr<Prediction> answer_ = Prediction{1200, {0.25f, 0.75f}, 0.5};
  std::vector<std::string> made_;
};

constexpr char kFeatures[] = R"({"features": [0.5, 1]})";

TEST_F(PredictTest, AClass) {
  const HttpResponse response = Post(kFeatures);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(*ParseJson(response.body), Json({{"run", "mnist"},
                                             {"step", 1200},
                                             {"kind", "classification"},
                                             {"predicted", 1},
                                             {"class", "yes"},
                                             {"probabilities", {0.25, 0.75}},
                                             {"seconds", 0.5}}));
  EXPECT_EQ(Post(kFeatures).status, 200);
  EXPECT_THAT(made_, ElementsAre("/jobs/mnist"));
}

TEST_F(PredictTest, ABinaryLabelHasTwoProbabilities) {
  files().Write("train_config.textproto",
                R"(model { name: "tiny" input_shape: 2 layers { dense { units: 1 } }
                           loss { kind: SIGMOID_CROSS_ENTROPY } })");
  answer_ = Prediction{7, {0.25f}, 0};
  const Json json = *ParseJson(Post(kFeatures).body);
  EXPECT_EQ(json["kind"], "binary");
  EXPECT_EQ(json["predicted"], 0);
  EXPECT_EQ(json["class"], "0");
  EXPECT_EQ(json["probabilities"], Json({0.75, 0.25}));
}

TEST_F(PredictTest, ARegression) {
  files().Write("train_config.textproto",
                R"(model { name: "tiny" input_shape: 2 layers { dense { units: 1 } }
                           loss { kind: MEAN_SQUARED_ERROR } })");
  answer_ = Prediction{7, {3.5f}, 0};
  EXPECT_EQ(*ParseJson(Post(kFeatures).body), Json({{"run", "mnist"},
                                                    {"step", 7},
                                                    {"kind", "regression"},
                                                    {"prediction", 3.5},
                                                    {"seconds", 0}}));
}

TEST_F(PredictTest, AModelThatHasDiverged) {
  answer_ = Prediction{7, {std::numeric_limits<float>::quiet_NaN(), 0.5f}, 0};
  const Json json = *ParseJson(Post(kFeatures).body);
  EXPECT_EQ(json["predicted"], nullptr);
  EXPECT_EQ(json["probabilities"], Json({nullptr, 0.5}));
  EXPECT_FALSE(json.contains("class"));
}

TEST_F(PredictTest, WhatThePredictorRefuses) {
  answer_ = absl::NotFoundError("there is no snapshot yet that can be read");
  EXPECT_EQ(Error(404, Post(kFeatures)), "there is no snapshot yet that can be read");
}

TEST_F(PredictTest, BodiesThatMakeNoSense) {
  EXPECT_EQ(Error(400, Post("{}")), "features: expected a list of numbers, found none");
  EXPECT_EQ(Error(400, Post(R"({"features": [1]})")),
            "features: expected 2 numbers for [2], found 1");
  EXPECT_EQ(Error(400, Post(R"({"features": [1e999]})")), "body: expected an object of JSON");
  EXPECT_EQ(Error(400, Post(R"({"features": [NaN]})")), "body: expected an object of JSON");
  EXPECT_THAT(made_, IsEmpty());
}

// Tells the ids that it was asked for.
class IdPredictor : public PredictorOfNoItems {
 public:
  absl::StatusOr<Prediction> Predict(const v1::TrainConfig&, Batch example) override {
    EXPECT_THAT(example.features[0].ids, ElementsAre(8));
    EXPECT_THAT(example.features[1].ids, ElementsAre(7, 0));
    EXPECT_THAT(example.features[1].weights, ElementsAre(0.5f, 2.0f));
    return Prediction{3, {0.75f}, 0};
  }
};

TEST_F(PredictTest, AModelOfIds) {
  api_options_.new_predictor = [](const std::string&) { return std::make_unique<IdPredictor>(); };
  files().Write("train_config.textproto", IdConfigText());
  const auto post = [&](const std::string& user) {
    return Post(absl::StrCat(R"({"features": {"seen": {"ids": [7, 0], "weights": [0.5, 2]}, )",
                             "\"user\": ", user, "}}"));
  };
  EXPECT_EQ(ParseJson(post("8").body)->at("predicted"), 1);
  EXPECT_EQ(Error(400, post("9")), "features.user: expected an id from 0 to 8, found 9");
}

// Tells what it was asked of the columns.
class ColumnsPredictor : public PredictorOfNoItems {
 public:
  absl::StatusOr<Prediction> Predict(const v1::TrainConfig&, Batch example) override {
    EXPECT_THAT(example.features[0].numbers.span(), ElementsAre(39));
    EXPECT_EQ(example.features[1].ids.size(), 2u);
    EXPECT_THAT(example.features[2].ids, ElementsAre(1));
    return Prediction{3, {0.75f}, 0};
  }
};

TEST_F(PredictTest, ColumnsAsInTraining) {
  api_options_.new_predictor = [](const std::string&) {
    return std::make_unique<ColumnsPredictor>();
  };
  files().Write("train_config.textproto", ColumnsConfigText());
  const auto post = [&](const std::string& age) {
    return Post(
        absl::StrCat(R"({"columns": {"tags": "a|b", "city": "Rome", "age": ")", age, "\"}}"));
  };
  EXPECT_EQ(ParseJson(post("39").body)->at("predicted"), 1);
  EXPECT_EQ(Error(400, post("old")), "columns.age: expected a number, found \"old\"");
  EXPECT_EQ(Error(400, Post(R"({"columns": {"name": "x"}})")),
            "columns: expected the columns age, tags, city, found \"name\"");
}

TEST_F(PredictTest, AnotherConfigurationReadsColumnsInItsWay) {
  api_options_.new_predictor = [](const std::string&) {
    return std::make_unique<ColumnsPredictor>();
  };
  files().Write("train_config.textproto", ColumnsConfigText());
  constexpr char kBody[] = R"({"columns": {"tags": "a|b", "city": "Rome", "age": "39"}})";
  EXPECT_EQ(Post(kBody).status, 200);
  std::string config = ColumnsConfigText();
  const size_t at = config.find("[\"Oslo\", \"Rome\"]");
  files().Write("train_config.textproto", config.replace(at, 16, "[\"Nice\", \"Rome\"]"));
  Poll();
  EXPECT_EQ(Post(kBody).status, 200);
  files().Write("train_config.textproto", config.replace(at, 16, "[\"Nice\", \"Nice\"]"));
  Poll();
  EXPECT_THAT(Error(400, Post(kBody)), testing::HasSubstr("Nice"));
}

TEST_F(PredictTest, AVocabularyThatIsGone) {
  std::string config = ColumnsConfigText();
  const size_t at = config.find("values: [\"Oslo\", \"Rome\"]");
  files().Write("train_config.textproto", config.replace(at, 24, "file: \"/cities\""));
  EXPECT_THAT(Error(404, Post(R"({"columns": {"age": "39"}})")), testing::HasSubstr("/cities"));
}

TEST_F(PredictTest, NoColumnsOfOtherRecords) {
  EXPECT_EQ(Error(400, Post(R"({"columns": {"age": 39}})")),
            "columns: expected features, for the run's records are not made of columns, found "
            "columns");
}

TEST_F(PredictTest, NotWithoutAModelOrAPredictor) {
  run_options_.runs = {"/old"};
  RunFiles(&memory_, "/old").Write("DONE", "{}");
  EXPECT_EQ(Error(404, Post(kFeatures, "old")), "the model's configuration is not known");
}

TEST_F(PredictTest, ModelsOfManyRunsDoNotFillTheMemory) {
  run_options_.runs = {"/runs"};
  for (int i = 0; i < 6; ++i) {
    RunFiles(&memory_, absl::StrCat("/runs/", i)).Write("train_config.textproto", TinyConfigText());
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Post(kFeatures, absl::StrCat(i)).status, 200);
  EXPECT_EQ(made_.size(), 6u);
  // The newest ones are kept, the oldest are made again.
  Post(kFeatures, "5");
  EXPECT_EQ(made_.size(), 6u);
  Post(kFeatures, "0");
  EXPECT_EQ(made_.size(), 7u);
}

// Finds two items, and tells what it was asked.
class ItemFinder : public Predictor {
 public:
  absl::StatusOr<Prediction> Predict(const v1::TrainConfig&, Batch) override {
    return absl::InternalError("not asked for");
  }
  absl::StatusOr<NearestItems> Nearest(const v1::TrainConfig& config,
                                       const RetrievalSpec& retrieval,
                                       const std::vector<bool>& query, Batch example,
                                       size_t count) override {
    EXPECT_EQ(config.model().features_size(), 4);
    EXPECT_EQ(retrieval.item_feature, 0u);
    EXPECT_THAT(query, ElementsAre(false, true, false, false));
    EXPECT_THAT(example.features[0].ids, ElementsAre(0));
    EXPECT_THAT(example.features[1].ids, ElementsAre(8));
    EXPECT_THAT(example.features[2].ids, ElementsAre(3, 4));
    EXPECT_THAT(example.features[3].numbers.span(), ElementsAre(0));
    if (count == 100) return absl::NotFoundError("there are no items yet");
    EXPECT_EQ(count, 10u);
    return NearestItems{7, 5, {{~uint64_t{0}, 1.5f}, {2, 1.25f}}, 0.5};
  }
};

class NearestTest : public PredictTest {
 protected:
  NearestTest() {
    api_options_.new_predictor = [](const std::string&) { return std::make_unique<ItemFinder>(); };
    files().Write("train_config.textproto", TowersConfigText());
  }
  HttpResponse Nearest(const std::string& body) {
    return Ask("POST", "/api/v1/runs/mnist/nearest", body);
  }
};

TEST_F(NearestTest, ItemsOfAUser) {
  const HttpResponse response = Nearest(R"({"features": {"user": 8, "seen": [3, 4]}})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(
      *ParseJson(response.body),
      Json({{"run", "mnist"},
            {"step", 7},
            {"items", 5},
            {"nearest",
             {{{"id", "18446744073709551615"}, {"score", 1.5}}, {{"id", "2"}, {"score", 1.25}}}},
            {"seconds", 0.5}}));
  EXPECT_EQ(Error(404, Nearest(R"({"features": {"user": 8, "seen": [3, 4]}, "k": 100})")),
            "there are no items yet");
}

TEST_F(NearestTest, RequestsThatMakeNoSense) {
  EXPECT_EQ(Error(400, Nearest(R"({"features": {"user": 9, "seen": []}})")),
            "features.user: expected an id from 0 to 8, found 9");
  EXPECT_EQ(Error(400, Nearest(R"({"features": {"user": 8, "seen": [], "item": 1}})")),
            "features: expected user (id of 9), seen (bag of 5 ids), found \"item\"");
  for (const char* const k : {"0", "101", "-1", "1.5", "\"3\""}) {
    EXPECT_EQ(Error(400, Nearest(absl::StrCat(R"({"features": {"user": 8}, "k": )", k, "}"))),
              absl::StrCat("k: expected 1 to 100, found ", k));
  }
  EXPECT_EQ(Error(400, Nearest("[]")), "body: expected an object of JSON");
}

TEST_F(NearestTest, ColumnsOfTheQuery) {
  files().Write("train_config.textproto", absl::StrCat(TowersConfigText(), R"(data { csv {}
                  features { name: "user" columns { column: "name" vocabulary {
                      values: ["a", "b", "c", "d", "e", "f", "g", "h"] } } }
                  features { name: "seen" columns { integer {} separator: "|" } }
                  features { name: "item" columns { integer {} } } })"));
  const Json form = Get("/runs/mnist/form");
  EXPECT_EQ(form["nearest"], Json({{"item_feature", "item"}, {"columns", {"name", "seen"}}}));
  EXPECT_EQ(form["columns"].size(), 4u);
  EXPECT_EQ(Nearest(R"({"columns": {"name": "i", "seen": "3|4"}})").status, 200);
  EXPECT_EQ(Error(400, Nearest(R"({"columns": {"item": "1"}})")),
            "columns: expected the columns name, seen, found \"item\"");
  EXPECT_EQ(Error(400, Nearest(R"({"columns": {"name": "i", "seen": "x"}})")).find("columns.seen"),
            0u);
}

TEST_F(NearestTest, TheFormSaysWhatARequestHas) {
  EXPECT_EQ(Get("/runs/mnist/form")["nearest"],
            Json({{"item_feature", "item"}, {"features", {"user", "seen"}}}));
}

TEST_F(NearestTest, ModelsThatFindNoItems) {
  files().Write("train_config.textproto", IdConfigText());
  EXPECT_EQ(Error(404, Nearest(R"({"features": {"user": 8}})")),
            "no metric of retrieval in evaluation.metrics says what the model's items are");
  EXPECT_FALSE(Get("/runs/mnist/form").contains("nearest"));
}

// Does not answer before the test allows it.
class SlowPredictor : public PredictorOfNoItems {
 public:
  SlowPredictor(StopSignal* asked, StopSignal* go) : asked_(asked), go_(go) {}

  absl::StatusOr<Prediction> Predict(const v1::TrainConfig&, Batch) override {
    asked_->Raise();
    go_->Wait();
    return Prediction{1, {0.5f, 0.5f}, 0};
  }

 private:
  StopSignal* const asked_;
  StopSignal* const go_;
};

TEST_F(PredictTest, TheThreadsAreNotAllTakenByPredictions) {
  RunFiles(&memory_, "/other").Write("train_config.textproto", TinyConfigText());
  run_options_.runs = {"/other"};
  StopSignal asked[2];
  StopSignal go;
  size_t made = 0;
  api_options_.new_predictor = [&](const std::string&) {
    return std::make_unique<SlowPredictor>(&asked[made++], &go);
  };
  Poll();
  std::thread first([&] { EXPECT_EQ(Post(kFeatures).status, 200); });
  asked[0].Wait();
  std::thread second([&] { EXPECT_EQ(Post(kFeatures, "other").status, 200); });
  asked[1].Wait();
  const HttpResponse response = Post(kFeatures);
  EXPECT_EQ(Error(429, response), "another prediction is under way, try again");
  EXPECT_THAT(response.headers, ElementsAre(testing::Pair("Retry-After", "1")));
  go.Raise();
  first.join();
  second.join();
  EXPECT_EQ(Post(kFeatures).status, 200);
}

}  // namespace
}  // namespace keelson
