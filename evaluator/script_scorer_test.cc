#include "evaluator/script_scorer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/thread.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/device/factory/device_factory.h"
#include "core/script/script_peer_testing.h"
#include "evaluator/snapshot_scorer.h"
#include "gmock/gmock.h"
#include "testing/tiny_model.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using Kind = ScriptMessageKind;
using Json = nlohmann::json;

// Fields of kScoring.
constexpr uint64_t kClassification = 0, kBinary = 1, kRegression = 2;
constexpr uint64_t kLogits = 0, kProbabilities = 1;

class ScriptScorerTest : public testing::Test {
 protected:
  // What the script says when it is greeted, and the answer.
  absl::Status Greet(std::vector<uint64_t> scoring, const std::string& names = "") {
    script_.Hello();
    if (predicts_) script_.Send(Kind::kForm, {1, 2});
    script_.Send(Kind::kScoring, std::move(scoring), names);
    auto socket = ScriptSocket::Create(script_.TakeAgentEnd(), &gone_);
    EXPECT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
    ScriptScorer::Options options;
    options.config = config_;
    options.predictions = &predictions_;
    auto scorer = ScriptScorer::Create(std::move(options), socket_.get(), &clock_, &gone_);
    if (!scorer.ok()) return scorer.status();
    scorer_ = *std::move(scorer);
    places_ = script_.ExpectEvaluation();
    return absl::OkStatus();
  }
  // Scores the snapshot of step 7. The script answers with what `compute` gives of a record: its
  // scores and its label.
  absl::StatusOr<ScoredSnapshot> Score(
      size_t outputs,
      const std::function<std::pair<std::vector<float>, float>(int64_t record)>& compute) {
    std::vector<std::vector<uint64_t>> requests;
    absl::StatusOr<ScoredSnapshot> scored = absl::InternalError("not scored");
    Thread evaluator([&] {
      scored = scorer_->Score({7, prefix_, absl::Time()}, nullptr, nullptr);
      socket_.reset();  // The script sees the end.
    });
    for (std::optional<ScriptMessage> message = script_.Receive(); message.has_value();
         message = script_.Receive()) {
      ScriptMessageReader reader(*message);
      EXPECT_EQ(message->kind, Kind::kScore);
      EXPECT_EQ(reader.Number(), 7u);
      const uint64_t first = reader.Number(), count = reader.Number();
      for (uint64_t row = 0; row < count; ++row) {
        const auto [scores, label] = compute(static_cast<int64_t>(first + row));
        std::copy(scores.begin(), scores.end(), script_.floats(places_.at(3)) + row * outputs);
        script_.floats(places_.at(4))[row] = label;
      }
      batches_.push_back(count);
      script_.Send(Kind::kScores, {first});
    }
    evaluator.Join();
    return scored;
  }

  const std::string prefix_ = FreshDirectory() + "/model.ckpt-7";
  v1::TrainConfig config_ = TinyConfig("unused");
  ManualClock clock_;
  StopSignal gone_;
  ScriptPeer script_;
  bool predicts_ = false;
  ScriptPredictions predictions_;
  std::unique_ptr<ScriptSocket> socket_;
  std::unique_ptr<ScriptScorer> scorer_;
  std::vector<uint64_t> places_;
  std::vector<uint64_t> batches_;
};

// Without what only an evaluator that has the records knows.
Json FiguresOf(const std::string& report) {
  Json json = Json::parse(report);
  for (Json& wrong : json["wrong"]) wrong.erase("input");
  json.erase("input_shape");
  return json;
}

TEST_F(ScriptScorerTest, TellsWhatTheEvaluatorOfLayersTells) {
  WriteTinyBundle(prefix_, 3, /*snapshot_id=*/99);
  config_.mutable_evaluation()->add_metrics()->mutable_top_k()->set_k(2);
  config_.mutable_evaluation()->add_metrics()->mutable_precision();
  const auto device = *CreateDevice("cpu", {.threads = 1});
  const TinyDataset records = FiveRecords();
  auto of_layers = SnapshotScorer::Create(config_, device.get(), &records, &clock_, &gone_);
  ASSERT_TRUE(of_layers.ok()) << of_layers.status();
  const auto expected = (*of_layers)->Score({7, prefix_, absl::Time()});
  ASSERT_TRUE(expected.ok()) << expected.status();

  ASSERT_EQ(Greet({kClassification, 2, 5, 2, kLogits}), absl::OkStatus());
  EXPECT_EQ(scorer_->computes(), "a test");
  EXPECT_THAT(script_.names(), ElementsAre("scores/kernel", "scores/bias"));
  const auto scored = Score(2, [&](int64_t record) {
    // Of the record [1, 0].
    const std::vector<float> scores = {script_.values(0)[0] + script_.values(1)[0],
                                       script_.values(0)[1] + script_.values(1)[1]};
    return std::pair(scores, record == 2 ? 1.0f : 0.0f);
  });
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_THAT(batches_, ElementsAre(2, 2, 1));
  EXPECT_EQ(scored->record.step, 7);
  EXPECT_EQ(scored->record.snapshot_id, 99u);
  EXPECT_EQ(scored->record.examples, 5);
  ASSERT_EQ(scored->record.metrics.size(), 4u);
  for (const auto& [name, value] : expected->record.metrics) {
    EXPECT_NEAR(scored->record.metrics.at(name), value, 1e-6) << name;
  }
  EXPECT_EQ(FiguresOf(scored->report), FiguresOf(expected->report));
}

TEST_F(ScriptScorerTest, ProbabilitiesAreAsGoodAsLogits) {
  WriteTinyBundle(prefix_, 3);
  ASSERT_EQ(Greet({kClassification, 2, 2, 10, kProbabilities}, "sound\nbroken"), absl::OkStatus());
  const auto scored = Score(2, [](int64_t record) {
    return std::pair(record == 0 ? std::vector<float>{0.75f, 0.25f} : std::vector<float>{1, 0},
                     0.0f);
  });
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_NEAR(scored->record.metrics.at("loss"), -std::log(0.75) / 2, 1e-6);
  EXPECT_EQ(Json::parse(scored->report)["classes"], Json({"sound", "broken"}));
}

TEST_F(ScriptScorerTest, BinaryLabelsHaveRankings) {
  WriteTinyBundle(prefix_, 3);
  config_.mutable_evaluation()->clear_metrics();
  config_.mutable_evaluation()->add_metrics()->mutable_auc();
  ASSERT_EQ(Greet({kBinary, 1, 4, 4, kProbabilities}), absl::OkStatus());
  const auto scored = Score(1, [](int64_t record) {
    return std::pair(std::vector<float>{0.2f + 0.2f * static_cast<float>(record)},
                     record >= 2 ? 1.0f : 0.0f);
  });
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(scored->record.metrics.at("auc"), 1);
  EXPECT_NEAR(scored->record.metrics.at("loss"), -(2 * std::log(0.8) + 2 * std::log(0.6)) / 4,
              1e-6);
  EXPECT_EQ(Json::parse(scored->report)["kind"], "binary");
}

TEST_F(ScriptScorerTest, NumbersHaveErrors) {
  WriteTinyBundle(prefix_, 3);
  config_.mutable_evaluation()->clear_metrics();
  config_.mutable_evaluation()->add_metrics()->mutable_mean_absolute_error();
  config_.mutable_evaluation()->set_steps(1);
  ASSERT_EQ(Greet({kRegression, 1, 4, 2, kLogits}), absl::OkStatus());
  const auto scored = Score(1, [](int64_t record) {
    return std::pair(std::vector<float>{static_cast<float>(record)}, 2.0f);
  });
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(scored->record.examples, 2) << "of one batch";
  EXPECT_NEAR(scored->record.metrics.at("loss"), 2.5, 1e-6);
  EXPECT_NEAR(scored->record.metrics.at("mean_absolute_error"), 1.5, 1e-6);
}

TEST_F(ScriptScorerTest, LabelsAndScoresThatAreNoneAreRefused) {
  WriteTinyBundle(prefix_, 3);
  ASSERT_EQ(Greet({kClassification, 2, 5, 2, kLogits}), absl::OkStatus());
  const absl::Status status =
      Score(2, [](int64_t record) {
        return std::pair(std::vector<float>{0, 0}, record == 3 ? 2.0f : 1.0f);
      }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the script's labels: expected whole numbers from 0 to 1, found 2 of record 3");
}

TEST_F(ScriptScorerTest, AProbabilityIsOne) {
  WriteTinyBundle(prefix_, 3);
  ASSERT_EQ(Greet({kClassification, 2, 1, 2, kProbabilities}), absl::OkStatus());
  const absl::Status status = Score(2, [](int64_t) {
                                return std::pair(std::vector<float>{3, -2}, 0.0f);
                              }).status();
  EXPECT_EQ(status.message(), "the script's scores: expected probabilities, found 3");
}

TEST_F(ScriptScorerTest, ASnapshotOfAnotherModelIsRefused) {
  WriteTinyBundle(prefix_, 3);
  config_.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(3);
  ASSERT_EQ(Greet({kClassification, 3, 5, 2, kLogits}), absl::OkStatus());
  EXPECT_THAT(
      Score(3, [](int64_t) { return std::pair(std::vector<float>(3), 0.0f); }).status().message(),
      HasSubstr("variable 'scores/kernel': the model expects float32 [2, 3], found"));
  EXPECT_THAT(batches_, testing::IsEmpty());
}

struct BadScoring {
  std::vector<uint64_t> numbers;
  const char* names;
  const char* text;
};

TEST_F(ScriptScorerTest, WhatCannotBeScoredIsRefused) {
  const BadScoring bad[] = {
      {{3, 2, 5, 2, 0}, "", "the script's kind of scores: expected 0 to 2, found 3"},
      {{0, 1, 5, 2, 0}, "", "the script's classes: expected 2 to 1048576, found 1"},
      {{1, 2, 5, 2, 0}, "", "the script's scores of a record: expected 1, found 2"},
      {{0, 2, 0, 2, 0}, "", "the script's records: expected 1 or more, found 0"},
      {{0, 2, 5, 0, 0}, "", "the script's records of a batch: expected 1 to 134217728, found 0"},
      {{0, 2, 5, 2, 0}, "a\nb\nc", "the script's names of classes: expected none or 2, found 3"},
      {{0, 2, 5, 2}, "", "the script's message: expected one of an evaluation"},
  };
  for (const BadScoring& each : bad) {
    ScriptPeer script;
    script.Hello();
    script.Send(Kind::kScoring, each.numbers, each.names);
    auto socket = ScriptSocket::Create(script.TakeAgentEnd(), &gone_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    ScriptScorer::Options options;
    options.config = config_;
    const absl::Status status =
        ScriptScorer::Create(std::move(options), socket->get(), &clock_, &gone_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << each.text;
    EXPECT_THAT(status.message(), HasSubstr(each.text));
  }
}

TEST_F(ScriptScorerTest, MetricsThatTheScoresDoNotHaveAreRefused) {
  EXPECT_THAT(Greet({kRegression, 1, 5, 2, kLogits}).message(),
              HasSubstr("evaluation.metrics[0].accuracy: expected a model with the loss "));
}

TEST_F(ScriptScorerTest, TheScriptsEndEndsTheScoring) {
  WriteTinyBundle(prefix_, 3);
  ASSERT_EQ(Greet({kClassification, 2, 5, 2, kLogits}), absl::OkStatus());
  script_.Close();
  EXPECT_EQ(scorer_->Score({7, prefix_, absl::Time()}, nullptr, nullptr).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(ScriptScorerTest, AnotherProtocolIsRefused) {
  script_.Send(Kind::kHello, {kScriptProtocol + 1}, "newer");
  auto socket = ScriptSocket::Create(script_.TakeAgentEnd(), &gone_);
  ASSERT_TRUE(socket.ok()) << socket.status();
  ScriptScorer::Options options;
  options.config = config_;
  EXPECT_THAT(
      ScriptScorer::Create(std::move(options), socket->get(), &clock_, &gone_).status().message(),
      HasSubstr(absl::StrCat("the script's protocol: expected ", kScriptProtocol,
                             " (use programs and package of one version), found ",
                             kScriptProtocol + 1)));
}

class ScriptPredictionTest : public ScriptScorerTest {
 protected:
  ScriptPredictionTest() { predicts_ = true; }

  void GreetTwoClasses(uint64_t flags = kLogits) {
    ASSERT_EQ(Greet({kClassification, 2, 5, 2, flags}), absl::OkStatus());
  }
  // The job's newest snapshot, of step 7.
  void CommitSnapshot() {
    WriteTinyBundle(prefix_, 3, /*snapshot_id=*/99);
    config_.mutable_checkpoint()->set_model_dir(DirectoryOf(prefix_));
    CheckpointDirectory directory(FileSystem::Real(), DirectoryOf(prefix_), &clock_);
    ASSERT_EQ(directory.Commit(7, {}), absl::OkStatus());
  }
  // A prediction of the dashboard's, of [0.5, 1], on a thread of its own.
  Thread Ask(absl::StatusOr<ScriptPrediction>* prediction) {
    return Thread([this, prediction] { *prediction = predictions_.Predict({{0.5f, 1}, ""}); });
  }
  // Answers a request to predict.
  void Answer(const std::vector<uint64_t>& request, std::vector<float> scores) {
    std::copy(scores.begin(), scores.end(), script_.floats(places_.at(3)));
    script_.Send(Kind::kPredicted, {request.at(1)});
  }

  absl::StatusOr<ScriptPrediction> prediction_ = absl::InternalError("not asked");
};

TEST_F(ScriptPredictionTest, IsOfTheNewestSnapshotWhereNoneWasScored) {
  CommitSnapshot();
  GreetTwoClasses();
  ASSERT_TRUE(predictions_.form().has_value());
  EXPECT_EQ(predictions_.form()->kind, "classification");
  EXPECT_THAT(predictions_.form()->input_shape, ElementsAre(2));
  Thread asking = Ask(&prediction_);
  const std::vector<uint64_t> request = script_.Expect(Kind::kPredict);
  EXPECT_EQ(request.at(0), 7u);
  EXPECT_THAT(std::vector<float>(script_.floats(request.at(2)), script_.floats(request.at(2)) + 2),
              ElementsAre(0.5f, 1));
  EXPECT_EQ(script_.values(0)[0], 3);
  Answer(request, {0, std::log(3.0f)});
  asking.Join();
  ASSERT_TRUE(prediction_.ok()) << prediction_.status();
  EXPECT_EQ(prediction_->step, 7);
  EXPECT_THAT(prediction_->outputs, ElementsAre(FloatNear(0.25, 1e-6), FloatNear(0.75, 1e-6)));
}

TEST_F(ScriptPredictionTest, ProbabilitiesStayWhatTheyAre) {
  CommitSnapshot();
  GreetTwoClasses(kProbabilities);
  Thread asking = Ask(&prediction_);
  Answer(script_.Expect(Kind::kPredict), {0.25f, 0.75f});
  asking.Join();
  ASSERT_TRUE(prediction_.ok()) << prediction_.status();
  EXPECT_THAT(prediction_->outputs, ElementsAre(FloatNear(0.25, 1e-6), FloatNear(0.75, 1e-6)));
}

TEST_F(ScriptPredictionTest, ThereMayBeNoSnapshotOrNoScript) {
  GreetTwoClasses();
  EXPECT_EQ(predictions_.Predict({{0, 0}, ""}).status(),
            absl::NotFoundError("there is no snapshot yet that can be read"));
  scorer_ = nullptr;
  EXPECT_FALSE(predictions_.form().has_value());
  EXPECT_EQ(predictions_.Predict({{0, 0}, ""}).status(),
            absl::NotFoundError("the script that predicts has ended"));
}

TEST_F(ScriptPredictionTest, AScriptWithoutAFormPredictsNothing) {
  predicts_ = false;
  GreetTwoClasses();
  EXPECT_FALSE(predictions_.form().has_value());
}

TEST_F(ScriptPredictionTest, TheScriptSaysWhyItHasFailed) {
  CommitSnapshot();
  GreetTwoClasses();
  Thread asking = Ask(&prediction_);
  script_.Send(Kind::kNotPredicted, {script_.Expect(Kind::kPredict).at(1)}, "KeyError:\nOslo");
  asking.Join();
  EXPECT_EQ(prediction_.status(), absl::UnavailableError("the script: KeyError: Oslo"));
}

TEST_F(ScriptPredictionTest, AnotherMessageIsNoAnswer) {
  CommitSnapshot();
  GreetTwoClasses();
  Thread asking = Ask(&prediction_);
  const uint64_t number = script_.Expect(Kind::kPredict).at(1);
  script_.Send(Kind::kPredicted, {number + 1});
  asking.Join();
  EXPECT_EQ(prediction_.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(prediction_.status().message(),
              HasSubstr("expected the answer to a prediction, found kind 43 with 8 bytes"));
}

TEST_F(ScriptPredictionTest, WhatTakesTooLongIsGivenUpAndScoringGoesOn) {
  CommitSnapshot();
  GreetTwoClasses();
  Thread asking = Ask(&prediction_);
  const std::vector<uint64_t> request = script_.Expect(Kind::kPredict);
  clock_.Advance(absl::Seconds(11));
  asking.Join();
  EXPECT_EQ(prediction_.status(),
            absl::DeadlineExceededError("the script has not answered in time"));
  EXPECT_EQ(predictions_.Predict({{0, 0}, ""}).status(),
            absl::UnavailableError("the script is still at a prediction before, try again"));
  Answer(request, {1, 0});  // Nobody waits for it.
  const auto scored = Score(2, [](int64_t) { return std::pair(std::vector<float>{1, 0}, 0.0f); });
  ASSERT_TRUE(scored.ok()) << scored.status();
  EXPECT_EQ(scored->record.metrics.at("accuracy"), 1);
}

TEST_F(ScriptPredictionTest, IsAnsweredOnceALateAnswerHasCome) {
  CommitSnapshot();
  GreetTwoClasses();
  Thread asking = Ask(&prediction_);
  const std::vector<uint64_t> late = script_.Expect(Kind::kPredict);
  clock_.Advance(absl::Seconds(11));
  asking.Join();
  Answer(late, {1, 0});
  Thread again = Ask(&prediction_);
  Answer(script_.Expect(Kind::kPredict), {0, 0});
  again.Join();
  ASSERT_TRUE(prediction_.ok()) << prediction_.status();
  EXPECT_THAT(prediction_->outputs, ElementsAre(0.5f, 0.5f));
}

TEST_F(ScriptPredictionTest, ComesBetweenTheBatchesOfASnapshot) {
  WriteTinyBundle(prefix_, 3, /*snapshot_id=*/99);
  GreetTwoClasses();
  absl::StatusOr<ScoredSnapshot> scored = absl::InternalError("not scored");
  Thread evaluator([&] { scored = scorer_->Score({7, prefix_, absl::Time()}, nullptr, nullptr); });
  Thread asking;
  for (int answered = 0; answered < 4; ++answered) {  // Three batches, and a prediction.
    const std::optional<ScriptMessage> message = script_.Receive();
    ASSERT_TRUE(message.has_value());
    ScriptMessageReader reader(*message);
    EXPECT_EQ(reader.Number(), 7u);
    const uint64_t number = reader.Number();
    std::fill_n(script_.floats(places_.at(3)), 4, 0.0f);
    std::fill_n(script_.floats(places_.at(4)), 2, 0.0f);
    if (answered == 0) asking = Ask(&prediction_);
    script_.Send(message->kind == Kind::kScore ? Kind::kScores : Kind::kPredicted, {number});
  }
  asking.Join();
  evaluator.Join();
  EXPECT_TRUE(scored.ok()) << scored.status();
  ASSERT_TRUE(prediction_.ok()) << prediction_.status();
  EXPECT_EQ(prediction_->step, 7);
}

}  // namespace
}  // namespace keelson
