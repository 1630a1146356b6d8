#include "cli/data/convert.h"

#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/data/data_commands.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/open_datasets.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kConfig[] = R"(
  model {
    features { name: "age" dense { shape: 1 } }
    features { name: "city" id {} }
    tables { name: "cities" dim: 2 }
    layers { name: "vector" inputs: "city" embedding { table: "cities" } }
    layers { concat {} inputs: "age" inputs: "vector" }
    layers { dense { units: 1 } }
    loss { kind: SIGMOID_CROSS_ENTROPY label: "bought" }
  }
  optimizer { sgd {} }
  learning_rate { base: 0.1 }
  train { batch_size: 1 epochs: 1 }
  data { csv {} train_files: "train.csv" eval_files: "eval.csv" }
)";

class ConvertTest : public testing::Test {
 protected:
  ConvertTest() {
    Write("train.csv", "age,city,bought\n1,Oslo,1\n2,Rome,0\n3,,0\n");
    Write("eval.csv", "age,city,bought\n4,Oslo,0\n");
    Write("job.textproto", kConfig);
  }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(PathOf(name), content).ok());
  }
  std::string PathOf(const std::string& name) const { return JoinPath(directory_, name); }
  ConvertOptions Options() const {
    return {PathOf("job.textproto"), directory_, PathOf("train.columns"), PathOf("eval.columns")};
  }
  static std::string Convert(const ConvertOptions& options) {
    std::ostringstream out;
    const absl::Status status = ConvertRecords(options, FileSystem::Real(), &out);
    return status.ok() ? out.str() : std::string(status.message());
  }

  const std::string directory_ = FreshDirectory();
};

TEST_F(ConvertTest, ColumnarFilesHaveTheRecordsOfTheJob) {
  EXPECT_EQ(Convert(Options()), absl::StrCat(PathOf("train.columns"), ": 3 records\n",
                                             PathOf("eval.columns"), ": 1 records\n"));
  const RecordSchema schema = {{{"age", Shape({1})}, {"city", {}, FeatureKind::kId}},
                               {{"bought", 2}}};
  v1::DataConfig data;
  data.set_data_dir(directory_);
  data.mutable_csv();
  data.add_train_files("train.csv");
  data.add_eval_files("eval.csv");
  const auto csv = OpenDatasets(data, schema, 1);
  data.mutable_columnar();
  data.set_train_files(0, "train.columns");
  data.set_eval_files(0, "eval.columns");
  const auto columnar = OpenDatasets(data, schema, 1);
  ASSERT_TRUE(csv.ok() && columnar.ok()) << csv.status() << columnar.status();
  EXPECT_EQ(columnar->eval->num_records(), 1);
  Batch expected, found;
  ASSERT_TRUE(csv->train->Read({2, 0, 1}, &expected).ok());
  ASSERT_TRUE(columnar->train->Read({2, 0, 1}, &found).ok());
  EXPECT_EQ(found.features[0].numbers.span(), expected.features[0].numbers.span());
  EXPECT_EQ(found.features[1].ids, expected.features[1].ids);
  EXPECT_EQ(found.labels[0].span(), expected.labels[0].span());
}

TEST_F(ConvertTest, WhatIsNotWritten) {
  ConvertOptions options = Options();
  options.train.clear();
  EXPECT_EQ(Convert(options), absl::StrCat(PathOf("eval.columns"), ": 1 records\n"));
  EXPECT_EQ(Convert(options), absl::StrCat(PathOf("eval.columns"),
                                           ": expected a file that is not there yet, found one"));
  options.eval.clear();
  EXPECT_EQ(Convert(options),
            "convert: expected a file to write (--train, --eval or both), found none");
  options.train = options.eval = PathOf("a");
  EXPECT_EQ(Convert(options),
            absl::StrCat("--eval: expected another file than --train, found ", PathOf("a")));
  options.eval.clear();
  Write("train.csv", "age,city,bought\n1,Oslo,1\nx,Rome,0\n");
  EXPECT_EQ(Convert(options),
            absl::StrCat(PathOf("train.csv"),
                         ":3:1: expected a number in the column \"age\", found \"x\""));
  EXPECT_THAT(*FileSystem::Real()->List(directory_),
              ElementsAre("eval.columns", "eval.csv", "job.textproto", "train.csv"));
}

TEST_F(ConvertTest, WhatAColumnarFileHas) {
  Convert(Options());
  const std::string path = PathOf("train.columns");
  std::ostringstream out;
  ASSERT_TRUE(PrintStatistics({path}, 0, FileSystem::Real(), &out).ok());
  EXPECT_THAT(out.str(), HasSubstr(absl::StrCat("3 records of ", path,
                                                ", a columnar file; all checksums fit\n"
                                                "name    is      values\n"
                                                "age     [1]     -\n"
                                                "city    any id  ids up to ")));
  EXPECT_THAT(out.str(), HasSubstr("bought  label   0 to 1, whole\n"));
  std::ostringstream none;
  EXPECT_EQ(PrintProposal({{path}}, FileSystem::Real(), &none).message(),
            absl::StrCat(path,
                         ": expected CSV or TFRecord, found a columnar file, which data { "
                         "columnar {} } reads and \"keelson_data stats\" describes"));
}

}  // namespace
}  // namespace keelson
