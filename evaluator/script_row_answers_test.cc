#include "evaluator/script_row_answers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/thread.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/table_testing.h"
#include "core/config/train_config.h"
#include "core/script/script_peer_testing.h"
#include "evaluator/script_scorer.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = ScriptMessageKind;

// A snapshot of step 7 that has two rows of "users" and no table "items"; the test is the script,
// which scores two records of regression.
class ScriptRowAnswersTest : public testing::Test {
 protected:
  static constexpr uint64_t kUsers = 0, kItems = 1;

  void SetUp() override {
    ASSERT_EQ(files_.CreateDirectories("/model"), absl::OkStatus());
    WriteSnapshot();
    script_.Hello();
    script_.Send(Kind::kForm, {1, 1});
    script_.Send(Kind::kScoring, {2, 1, 2, 2, 0});
    auto socket = ScriptSocket::Create(script_.TakeAgentEnd(), &gone_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
    ScriptScorer::Options options;
    options.config = *ParseTrainConfig(
        R"(model { name: "clicks" external {} tables { name: "users" dim: 2 } tables { name: "items" dim: 3 } }
           initial_values { groups { variables: "users" constant { value: 0.5 } }
                            groups { variables: "items" constant { value: 0.25 } } }
           optimizer { sgd {} } learning_rate { base: 0.1 } data { external { train_records: 10 } }
           train { batch_size: 2 max_steps: 20 } checkpoint { model_dir: "/model" })",
        "job");
    options.file_system = &files_;
    options.predictions = &predictions_;
    auto scorer = ScriptScorer::Create(std::move(options), socket_.get(), &clock_, &gone_);
    ASSERT_TRUE(scorer.ok()) << scorer.status();
    scorer_ = *std::move(scorer);
    evaluation_ = script_.Receive();
    ASSERT_TRUE(evaluation_.has_value());
  }
  void TearDown() override {
    script_.Close();
    if (scoring_.Joinable()) scoring_.Join();
    if (asking_.Joinable()) asking_.Join();
  }

  void WriteSnapshot() {
    TestTable users;
    users.spec = {"users", 2, {Initializer::Kind::kConstant, 0.5f}};
    users.rows[7] = {{1, 2}, {}, 3, 4};
    users.rows[8] = {{3, 4}, {}, 9, 2};
    WriteTables(&files_, prefix_, {users}, 1);
  }
  void DamageRow8() {
    const std::string path = DataPath(prefix_, 0, 1);
    std::string bytes = *ReadFile(path, &files_);
    const float row[] = {3, 4};
    const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(row), sizeof(row)));
    ASSERT_NE(at, std::string::npos);
    bytes[at] = 1;
    files_.SetContent(path, bytes);
  }

  // Begins to score the snapshot; the script is asked.
  void BeginScoring() {
    scoring_ = Thread([this] {
      scored_ = scorer_->Score({7, prefix_, absl::Time()}, nullptr, nullptr);
    });
    EXPECT_THAT(script_.Expect(Kind::kScore), ElementsAre(7u, 0u, 2u));
  }
  absl::Status EndScoring() {
    script_.Send(Kind::kScores, {0});
    scoring_.Join();
    return scored_.status();
  }
  // Asks for users' rows in space 0.
  SpaceRows AskForUsers(char* memory, const std::vector<uint64_t>& ids) {
    const SpaceRows rows(memory, ids.size(), 2);
    std::copy(ids.begin(), ids.end(), rows.ids);
    script_.Send(Kind::kRows, {0, kUsers, 2, ids.size()});
    return rows;
  }
  static std::vector<float> Row(const SpaceRows& rows, size_t id, size_t dim) {
    const float* const begin = rows.values + rows.positions[id] * dim;
    return {begin, begin + dim};
  }

  const std::string prefix_ = "/model/model.ckpt-7";
  MemoryFileSystem files_;
  ManualClock clock_;
  StopSignal gone_;
  ScriptPeer script_;
  ScriptPredictions predictions_;
  std::unique_ptr<ScriptSocket> socket_;
  std::unique_ptr<ScriptScorer> scorer_;
  std::optional<ScriptMessage> evaluation_;
  absl::StatusOr<ScoredSnapshot> scored_ = absl::InternalError("not scored");
  absl::StatusOr<ScriptPrediction> prediction_ = absl::InternalError("not asked");
  Thread scoring_, asking_;
};

TEST_F(ScriptRowAnswersTest, TheScriptIsToldTheTables) {
  ASSERT_EQ(evaluation_->kind, Kind::kEvaluation);
  ScriptMessageReader reader(*evaluation_);
  for (int place = 0; place < 5; ++place) reader.Number();
  EXPECT_EQ(reader.Number(), 2u);
  EXPECT_EQ(reader.Number(), 2u);
  EXPECT_EQ(reader.Number(), 3u);
  EXPECT_EQ(reader.Text(), "users\nitems");
}

TEST_F(ScriptRowAnswersTest, RowsAreTheSnapshotsAndOtherwiseInitialValues) {
  BeginScoring();
  char* const memory = script_.MakeSpace(3, 4096);
  const SpaceRows users(memory, 4, 2);
  const SpaceRows items(users.end, 1, 3);
  for (size_t i = 0; i < 4; ++i) users.ids[i] = std::vector<uint64_t>{8, 9, 7, 8}[i];
  items.ids[0] = 7;
  script_.Send(Kind::kRows, {3, kUsers, 2, 4, kItems, 3, 1});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(3u, 1u, 3u, 1u));
  EXPECT_THAT(Row(users, 0, 2), ElementsAre(3, 4));
  EXPECT_THAT(Row(users, 1, 2), Each(0.5f));
  EXPECT_THAT(Row(users, 2, 2), ElementsAre(1, 2));
  EXPECT_EQ(users.positions[3], users.positions[0]);
  EXPECT_THAT(Row(items, 0, 3), Each(0.25f)) << "the snapshot has no such table";
  EXPECT_EQ(EndScoring(), absl::OkStatus());
}

TEST_F(ScriptRowAnswersTest, ARequestThatFitsNoTableEndsTheScoring) {
  BeginScoring();
  script_.MakeSpace(0, 4096);
  script_.Send(Kind::kRows, {0, 2, 2, 1});
  scoring_.Join();
  EXPECT_EQ(scored_.status(), absl::InvalidArgumentError(
                                  "the script's message: table: expected less than 2, found 2"));
}

TEST_F(ScriptRowAnswersTest, AMessageHasItsFieldsAlone) {
  BeginScoring();
  script_.Send(Kind::kRowSpace, {0, 64, 1});
  scoring_.Join();
  EXPECT_EQ(scored_.status(),
            absl::InvalidArgumentError("the script's message: expected kind 20 with its fields "
                                       "alone, found 24 bytes"));
}

TEST_F(ScriptRowAnswersTest, RowsThatAreWantedAheadAreNotOfEvaluations) {
  BeginScoring();
  script_.MakeSpace(0, 4096);
  script_.Send(Kind::kRowsAhead, {0, kUsers, 2, 1});
  scoring_.Join();
  EXPECT_THAT(scored_.status().message(), HasSubstr("found kind 22 with 32 bytes"));
}

TEST_F(ScriptRowAnswersTest, OfRowsThatCannotBeReadNothingCountsAndTheNextSnapshotIsScored) {
  DamageRow8();
  BeginScoring();
  char* const memory = script_.MakeSpace(0, 4096);
  AskForUsers(memory, {8});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 0u, 1u));
  EXPECT_EQ(EndScoring().code(), absl::StatusCode::kDataLoss);
  WriteSnapshot();
  BeginScoring();
  const SpaceRows rows = AskForUsers(memory, {8});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 1u, 1u));
  EXPECT_THAT(Row(rows, 0, 2), ElementsAre(3, 4));
  EXPECT_EQ(EndScoring(), absl::OkStatus());
}

// The dashboard asks; the script is.
class ScriptPredictionRowsTest : public ScriptRowAnswersTest {
 protected:
  void Ask() {
    CheckpointDirectory directory(&files_, "/model", &clock_);
    ASSERT_EQ(directory.Commit(7, {}), absl::OkStatus());
    asking_ = Thread([this] { prediction_ = predictions_.Predict({{1}, ""}); });
    number_ = script_.Expect(Kind::kPredict).at(1);
  }

  uint64_t number_ = 0;
};

TEST_F(ScriptPredictionRowsTest, APredictionHasRows) {
  Ask();
  const SpaceRows rows = AskForUsers(script_.MakeSpace(0, 4096), {8});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 1u, 1u));
  EXPECT_THAT(Row(rows, 0, 2), ElementsAre(3, 4));
  script_.Send(Kind::kPredicted, {number_});
  asking_.Join();
  EXPECT_TRUE(prediction_.ok()) << prediction_.status();
}

TEST_F(ScriptPredictionRowsTest, ThePageHearsWhyRowsCannotBeRead) {
  DamageRow8();
  Ask();
  AskForUsers(script_.MakeSpace(0, 4096), {8});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 0u, 1u));
  script_.Send(Kind::kNotPredicted, {number_}, "no rows");
  asking_.Join();
  EXPECT_EQ(prediction_.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(prediction_.status().message(), HasSubstr(prefix_));
}

TEST_F(ScriptPredictionRowsTest, ABadRequestEndsTheEvaluationToo) {
  Ask();
  script_.Send(Kind::kRows, {0, kUsers, 2, 1});
  asking_.Join();
  const absl::Status expected = absl::InvalidArgumentError(
      "the script's message: space: expected one that was made, found 0");
  EXPECT_EQ(prediction_.status(), expected);
  EXPECT_EQ(predictions_.Predict({{1}, ""}).status(), expected) << "the script waits";
  EXPECT_EQ(scorer_->Score({7, prefix_, absl::Time()}, nullptr, nullptr).status(), expected);
}

TEST_F(ScriptPredictionRowsTest, WhatWasGivenUpMayStillHaveRows) {
  Ask();
  char* const memory = script_.MakeSpace(0, 4096);
  clock_.Advance(absl::Seconds(11));
  asking_.Join();
  EXPECT_EQ(prediction_.status().code(), absl::StatusCode::kDeadlineExceeded);
  // While others would predict, and while the next snapshot is scored.
  AskForUsers(memory, {7});
  EXPECT_EQ(predictions_.Predict({{1}, ""}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 1u, 1u));
  BeginScoring();
  AskForUsers(memory, {7});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 1u, 1u));
  script_.Send(Kind::kPredicted, {number_});
  EXPECT_EQ(EndScoring(), absl::OkStatus());
}

}  // namespace
}  // namespace keelson
