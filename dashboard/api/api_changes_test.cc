// What is POSTed to the API: predictions and changes of the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/stop_signal.h"
#include "core/client/services/chief_service_testing.h"
#include "core/cluster/consistency.h"
#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RecordedActions : public JobActions {
 public:
  absl::Status EndTraining(absl::string_view reason) override {
    calls.push_back(absl::StrCat("end: ", reason));
    return status;
  }
  absl::Status SetMode(absl::string_view mode) override {
    calls.push_back(absl::StrCat("mode: ", mode));
    return status;
  }

  std::vector<std::string> calls;
  absl::Status status;
};

class ActionsTest : public DashboardApiTest {
 protected:
  ActionsTest() {
    api_options_.token = kToken;
    api_options_.actions = &actions_;
  }
  HttpResponse Post(const std::string& action, const std::string& body,
                    const std::string& authorization = absl::StrCat("Bearer ", kToken)) {
    return Ask("POST", absl::StrCat("/api/v1/runs/mnist/actions/", action), body, authorization);
  }

  RecordedActions actions_;
};

TEST_F(ActionsTest, TheJobsTokenChangesTheJob) {
  EXPECT_EQ(Get("/runs")["read_only"], false);
  EXPECT_EQ(Post("end_training", R"({"reason": "good enough"})").status, 202);
  EXPECT_EQ(Post("set_mode", R"({"mode": "ssp:4"})").status, 202);
  EXPECT_THAT(actions_.calls, ElementsAre("end: good enough", "mode: ssp:4"));
}

TEST_F(ActionsTest, WarnsOfAWrongTokenOnceAMinute) {
  const auto ask = [&] {
    testing::internal::CaptureStderr();
    EXPECT_EQ(Post("set_mode", R"({"mode": "async"})", "Bearer wrong").status, 401);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(ask(), testing::HasSubstr("asked for a change without the job's token"));
  EXPECT_EQ(ask(), "");
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(ask(), testing::HasSubstr("asked for a change without the job's token"));
}

TEST_F(ActionsTest, NothingChangesWithoutTheToken) {
  for (const char* authorization :
       {"", "Bearer", "Bearer ", "Bearer 0123456789abcdeF", "Bearer 0123456789abcde",
        "Bearer 0123456789abcdef0", "Basic 0123456789abcdef", "0123456789abcdef",
        "bearer 0123456789abcdef"}) {
    const HttpResponse response = Post("end_training", R"({"reason": "a"})", authorization);
    EXPECT_EQ(Error(401, response), "expected the job's token: Authorization: Bearer TOKEN");
    EXPECT_THAT(response.headers, ElementsAre(testing::Pair("WWW-Authenticate", "Bearer")));
  }
  // Nor is a token taken from elsewhere.
  EXPECT_EQ(Ask("POST", absl::StrCat("/api/v1/runs/mnist/actions/set_mode?token=", kToken),
                absl::StrCat(R"({"mode": "async", "token": ")", kToken, "\"}"))
                .status,
            401);
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, ReadOnlyByDefault) {
  api_options_.token.clear();
  EXPECT_EQ(Get("/runs")["read_only"], true);
  EXPECT_EQ(Error(403, Post("end_training", R"({"reason": "a"})")),
            "read-only: the evaluator was started without --auth_token_file");
  EXPECT_EQ(Post("set_mode", R"({"mode": "async"})", "Bearer ").status, 403);
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, OnlyTheOwnRun) {
  run_options_.runs = {"/old"};
  RunFiles(&memory_, "/old").Write("DONE", "{}");
  const HttpResponse response = Ask("POST", "/api/v1/runs/old/actions/set_mode",
                                    R"({"mode": "async"})", absl::StrCat("Bearer ", kToken));
  EXPECT_EQ(Error(409, response), "this is not the job of the evaluator, or that has no chief");
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, NotWithoutAChief) {
  api_options_.actions = nullptr;
  EXPECT_EQ(Get("/runs")["read_only"], true);
  Error(409, Post("set_mode", R"({"mode": "async"})"));
}

TEST_F(ActionsTest, BodiesThatMakeNoSense) {
  const std::string long_reason(201, 'a');
  for (const std::string& body :
       {std::string("{}"), std::string(R"({"reason": 1})"), std::string(R"({"reason": ""})"),
        std::string(R"({"reason": "a\nb"})"),
        absl::StrCat(R"({"reason": ")", long_reason, "\"}")}) {
    EXPECT_EQ(Error(400, Post("end_training", body)), "reason: expected a line of 1 to 200 bytes");
  }
  EXPECT_EQ(Error(400, Post("end_training", "[]")), "body: expected an object of JSON");
  EXPECT_EQ(Error(400, Post("set_mode", "{")), "body: expected an object of JSON");
  EXPECT_EQ(Error(400, Post("set_mode", "{}")), "mode: expected async, ssp:N, sync:N or sync:N/M");
  // Another page's form cannot say that it is JSON.
  EXPECT_EQ(Error(400, Post("set_mode", "")), "Content-Type: expected application/json, found ''");
  EXPECT_THAT(actions_.calls, IsEmpty());
}

TEST_F(ActionsTest, WhatTheChiefAnswers) {
  const std::pair<absl::Status, int> answers[] = {
      {absl::InvalidArgumentError("bad"), 400},  {absl::FailedPreconditionError("bad"), 409},
      {absl::PermissionDeniedError("bad"), 403}, {absl::UnauthenticatedError("bad"), 401},
      {absl::UnavailableError("bad"), 503},      {absl::DeadlineExceededError("bad"), 503},
      {absl::UnimplementedError("bad"), 409}};
  for (const auto& [status, expected] : answers) {
    actions_.status = status;
    EXPECT_EQ(Error(expected, Post("set_mode", R"({"mode": "async"})")), "bad");
  }
}

class RecordedChief : public FakeChiefService {
 public:
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse*) override {
    calls.push_back(request.ShortDebugString());
    return status;
  }
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse*) override {
    const auto mode = ConsistencyMode::FromProto(request.mode());
    EXPECT_TRUE(mode.ok()) << mode.status();
    if (mode.ok()) calls.push_back(mode->ToString());
    return status;
  }

  std::vector<std::string> calls;
  absl::Status status;
};

TEST(ChiefActionsTest, AskTheChief) {
  RecordedChief chief;
  const std::unique_ptr<JobActions> actions = ChiefActions(&chief);
  EXPECT_TRUE(actions->EndTraining("good enough").ok());
  for (const char* mode : {"async", "ssp:4", "sync:3", "sync:3/4"}) {
    EXPECT_TRUE(actions->SetMode(mode).ok()) << mode;
  }
  EXPECT_THAT(chief.calls,
              ElementsAre("reason: \"good enough\"", "async", "ssp:4", "sync:3", "sync:3/4"));
  chief.status = absl::PermissionDeniedError("no");
  EXPECT_EQ(actions->EndTraining("a"), chief.status);
  EXPECT_EQ(actions->SetMode("async"), chief.status);
}

TEST(ChiefActionsTest, AModeThatMakesNoSenseDoesNotReachTheChief) {
  RecordedChief chief;
  const std::unique_ptr<JobActions> actions = ChiefActions(&chief);
  for (const char* mode : {"", "fast", "ssp:-1", "sync:0", "sync:99999999999999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(actions->SetMode(mode))) << mode;
  }
  EXPECT_THAT(chief.calls, IsEmpty());
}

// Tells what it was asked.
class RecordedPredictor : public Predictor {
 public:
  explicit RecordedPredictor(absl::StatusOr<Prediction> answer) : answer_(std::move(answer)) {}

  absl::StatusOr<Prediction> Predict(const v1::ModelConfig& model,
                                     absl::Span<const float> features) override {
    EXPECT_EQ(model.name(), "tiny");
    EXPECT_THAT(features, ElementsAre(0.5f, 1.0f));
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
  EXPECT_EQ(Error(400, Post("{}")), "features: expected a list of numbers");
  EXPECT_EQ(Error(400, Post(R"({"features": 1})")), "features: expected a list of numbers");
  EXPECT_EQ(Error(400, Post(R"({"features": [1, null]})")), "features[1]: expected a number");
  EXPECT_EQ(Error(400, Post(R"({"features": [[1], [2]]})")), "features[0]: expected a number");
  EXPECT_EQ(Error(400, Post(R"({"features": [1e999]})")), "body: expected an object of JSON");
  EXPECT_EQ(Error(400, Post(R"({"features": [NaN]})")), "body: expected an object of JSON");
  EXPECT_THAT(made_, IsEmpty());
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

  absl::StatusOr<Prediction> Predict(const v1::ModelConfig&, absl::Span<const float>) override {
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
