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
class RecordedPredictor : public Predictor {
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
class IdPredictor : public Predictor {
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

// Does not answer before the test allows it.
class SlowPredictor : public Predictor {
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
