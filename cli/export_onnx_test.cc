#include "cli/export_onnx.h"

#include <sstream>
#include <string>

#include "absl/strings/str_replace.h"
#include "cli/linear_model_testing.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/model.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class ExportOnnxTest : public testing::Test {
 protected:
  ExportOnnxTest() {
    options_.snapshot = model_.snapshot();
    options_.out = model_.Path("model.onnx");
  }
  void ExpectError(absl::StatusCode code, const std::string& text) {
    const absl::Status status = ExportOnnx(options_, &out_);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
  // Changes a text in the job's configuration.
  void Replace(const std::string& from, const std::string& to) {
    const std::string config = ReadFile(model_.Path("train_config.textproto")).value_or("");
    model_.WriteText("train_config.textproto", absl::StrReplaceAll(config, {{from, to}}));
  }

  const LinearModel model_;
  OnnxOptions options_;
  std::ostringstream out_;
};

TEST_F(ExportOnnxTest, WritesTheModelWithItsRows) {
  ASSERT_EQ(ExportOnnx(options_, &out_), absl::OkStatus());
  onnx::Model model;
  ASSERT_TRUE(model.ParseFromString(ReadFile(options_.out).value_or("")));
  EXPECT_EQ(model.graph().name(), "linear");
  EXPECT_EQ(model.doc_string(), "Exported from model.ckpt-10");
  for (const onnx::Tensor& tensor : model.graph().initializer()) {
    if (tensor.name() != "weights") continue;
    EXPECT_EQ(tensor.dims(0), 4);  // three rows, and that of other ids
    EXPECT_EQ(tensor.raw_data().substr(12), std::string(4, '\0'));
  }
  EXPECT_THAT(out_.str(), HasSubstr("table weights: 3 rows\n"));
}

TEST_F(ExportOnnxTest, SaysWhatOtherIdsHaveInPlaceOfRandomValues) {
  Replace("constant { value: 0 }", "uniform { low: 1 high: 2 }");
  TestTable table;
  table.spec = {"weights", 1, {Initializer::Kind::kUniform, 1, 2}};
  table.seed = 3;
  WriteTables(FileSystem::Real(), model_.snapshot(), {table}, 1);
  ASSERT_EQ(ExportOnnx(options_, &out_), absl::OkStatus());
  EXPECT_THAT(out_.str(), HasSubstr("table weights: 0 rows; other ids have 1.5, the mean of"));
}

TEST_F(ExportOnnxTest, OtherInitialValuesThanTheSnapshots) {
  Replace("constant { value: 0 }", "uniform { low: 1 high: 2 }");
  ExpectError(absl::StatusCode::kInvalidArgument, "weights");
}

TEST_F(ExportOnnxTest, WhatIsThereOrMissing) {
  ASSERT_EQ(ExportOnnx(options_, &out_), absl::OkStatus());
  ExpectError(absl::StatusCode::kAlreadyExists, "model.onnx: exists already; --force replaces it");
  options_.force = true;
  EXPECT_EQ(ExportOnnx(options_, &out_), absl::OkStatus());
  options_.config_path = model_.Path("none.textproto");
  ExpectError(absl::StatusCode::kNotFound, "none.textproto");
  options_.snapshot = model_.Path("model.ckpt-3");
  ExpectError(absl::StatusCode::kNotFound, "model.ckpt-3");
}

TEST_F(ExportOnnxTest, AModelThatIsNotTheSnapshots) {
  Replace(R"(embedding_bag { table: "weights" combiner: SUM } })",
          R"(embedding_bag { table: "weights" combiner: SUM } } layers { dense { units: 1 } })");
  ExpectError(absl::StatusCode::kNotFound, "dense_1/kernel");
}

}  // namespace
}  // namespace keelson
