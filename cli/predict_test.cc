#include "cli/predict.h"

#include <sstream>
#include <string>

#include "cli/linear_model_testing.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// 1 / (1 + exp(-4.5)), 1 / (1 + exp(1)), 1 / 2
constexpr char kScored[] = "record,label,probability\n0,1,0.9890131\n1,0,0.26894143\n2,0,0.5\n";

class PredictTest : public testing::Test {
 protected:
  PredictTest() { options_.snapshot = model_.snapshot(); }

  std::string Predicted() {
    std::ostringstream out;
    const absl::Status status = PredictRecords(options_, &out, &log_);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }
  void ExpectError(absl::StatusCode code, const std::string& text) {
    std::ostringstream out;
    const absl::Status status = PredictRecords(options_, &out, &log_);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  const LinearModel model_;
  PredictOptions options_;
  std::ostringstream log_;
};

TEST_F(PredictTest, ScoresTheRecordsThatEvaluate) {
  for (const int64_t batch_size : {1, 2, 3, 1000}) {
    options_.batch_size = batch_size;
    EXPECT_EQ(Predicted(), kScored);
  }
  EXPECT_THAT(log_.str(), StartsWith("3 records scored with " + model_.snapshot()));
}

TEST_F(PredictTest, OrThoseThatTrainOrAFew) {
  options_.limit = 2;
  EXPECT_EQ(Predicted(), "record,label,probability\n0,1,0.9890131\n1,0,0.26894143\n");
  options_.records.train = true;
  EXPECT_EQ(Predicted(), "record,label,probability\n0,1,0.62245935\n");
}

TEST_F(PredictTest, OrThoseOfOtherFiles) {
  model_.WriteText("new_1", "1 2:1\n");
  model_.WriteText("new_2", "1 2:-1\n");
  options_.records.files = {"new_*"};
  EXPECT_EQ(Predicted(), "record,label,probability\n0,1,0.26894143\n1,1,0.7310586\n");
  options_.records.files = {"nothing_*"};
  ExpectError(absl::StatusCode::kNotFound, "nothing_*");
}

TEST_F(PredictTest, LinesOfJsonHaveTheFeatures) {
  options_.json = options_.features = true;
  options_.limit = 1;
  EXPECT_EQ(Predicted(),
            R"({"record":0,"label":1.0,"probability":0.9890130758285522,"features":{"features":)"
            R"({"ids":[1,3],"weights":[1.0,2.0]}}})"
            "\n");
}

TEST_F(PredictTest, RecordsWithoutLabels) {
  options_.records.no_labels = true;
  options_.limit = 1;
  EXPECT_EQ(Predicted(), "record,probability\n0,0.9890131\n");
}

TEST_F(PredictTest, ColumnsWithoutThatOfTheLabel) {
  const std::string config = ReadFile(model_.Path("train_config.textproto")).value_or("");
  const size_t begin = config.find("data {"), end = config.find('}', config.find('}', begin) + 1);
  const std::string data = R"(data {
      csv {}
      features { name: "features" columns { column: "ids" integer {} separator: "|" weight_separator: ":" } }
      labels { name: "label" column: "bought" values: ["no", "yes"] } data_dir: ")" +
                           DirectoryOf(model_.Path("x")) + "\" }";
  model_.WriteText("train_config.textproto",
                   std::string(config).replace(begin, end + 1 - begin, data));
  model_.WriteText("new.csv", "ids,price\n1:1|3:2,7\n2:1,8\n");
  options_.records.files = {"new.csv"};
  ExpectError(absl::StatusCode::kInvalidArgument, "expected a column \"bought\"");
  options_.records.no_labels = true;
  EXPECT_EQ(Predicted(), "record,probability\n0,0.9890131\n1,0.26894143\n");
}

TEST_F(PredictTest, WritesAFileThatIsNotThere) {
  options_.out = model_.Path("scores.csv");
  EXPECT_EQ(Predicted(), "");
  EXPECT_EQ(ReadFile(options_.out).value_or(""), kScored);
  ExpectError(absl::StatusCode::kAlreadyExists, "scores.csv: exists already; --force replaces it");
  options_.force = true;
  options_.limit = 1;
  EXPECT_EQ(Predicted(), "");
  EXPECT_EQ(ReadFile(options_.out).value_or(""), "record,label,probability\n0,1,0.9890131\n");
}

TEST_F(PredictTest, ALineThatIsNoRecordLeavesNoFile) {
  model_.WriteText("bad", "1 1:1\n1 1:x\n");
  options_.records.files = {"bad"};
  options_.out = model_.Path("scores.csv");
  options_.batch_size = 1;
  ExpectError(absl::StatusCode::kInvalidArgument, "bad:2:5: expected");
  EXPECT_FALSE(FileExists(options_.out));
}

TEST_F(PredictTest, WhatIsMissing) {
  options_.snapshot = model_.Path("model.ckpt-11");
  ExpectError(absl::StatusCode::kNotFound, "model.ckpt-11");
  options_.snapshot = model_.snapshot();
  options_.config_path = model_.Path("other.textproto");
  ExpectError(absl::StatusCode::kNotFound, "other.textproto");
}

TEST_F(PredictTest, FilesOfGeneratedRecords) {
  const std::string config = ReadFile(model_.Path("train_config.textproto")).value_or("");
  const size_t begin = config.find("data {"), end = config.find('}', config.find('}', begin) + 1);
  model_.WriteText(
      "train_config.textproto",
      std::string(config).replace(begin, end + 1 - begin, "data { generated_ctr {} }"));
  options_.records.files = {"test"};
  ExpectError(absl::StatusCode::kInvalidArgument, "--files: expected a model of libsvm");
}

}  // namespace
}  // namespace keelson
