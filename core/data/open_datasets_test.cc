#include "core/data/open_datasets.h"

#include <numeric>
#include <vector>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/idx_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<uint8_t> kTenLabels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

v1::DataConfig Config(const std::string& text) {
  v1::DataConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::vector<float> Labels(const Dataset& dataset) {
  std::vector<int64_t> records(dataset.num_records());
  std::iota(records.begin(), records.end(), 0);
  Batch batch;
  EXPECT_TRUE(dataset.Read(records, &batch).ok());
  return {batch.labels[0].span().begin(), batch.labels[0].span().end()};
}

void ExpectError(const absl::Status& status, absl::StatusCode code,
                 const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
}

RecordSchema Images(const Shape& shape, int64_t num_classes = 10) {
  return {.features = {{"features", shape}}, .labels = {{"label", num_classes}}};
}

class OpenIdxTest : public testing::Test {
 protected:
  absl::StatusOr<Datasets> Open(const std::string& more = "", const Shape& shape = Shape({2, 2, 1}),
                                int64_t num_classes = 10) {
    v1::DataConfig config = Config(more);
    config.set_data_dir(directory_);
    return OpenDatasets(config, Images(shape, num_classes), 1);
  }

  void ExpectInvalid(const absl::Status& status, const std::vector<std::string>& parts) {
    ExpectError(status, absl::StatusCode::kInvalidArgument, parts);
  }

  std::string Path(const std::string& name) { return JoinPath(directory_, name); }
  void Write(const std::string& name, absl::string_view content) {
    WriteTestFile(Path(name), content);
  }

  const std::string directory_ = FreshDirectory();
};

TEST_F(OpenIdxTest, TrainAndEvalByName) {
  struct Names {
    std::string train, eval;
  };
  for (const Names& names :
       {Names{"train", "t10k"}, Names{"emnist-digits-train", "emnist-digits-test"},
        Names{"z-train", "a-test"}}) {
    const std::string directory = FreshDirectory();
    WriteIdxPair(directory, names.train, {1, 2, 3}, true);
    WriteIdxPair(directory, names.eval, {4, 5}, false);
    v1::DataConfig config;
    config.set_data_dir(directory);
    const auto data = OpenDatasets(config, Images(Shape({4})), 1);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_THAT(Labels(*data->train), ElementsAre(1, 2, 3));
    EXPECT_THAT(Labels(*data->eval), ElementsAre(4, 5));
  }
}

TEST_F(OpenIdxTest, SinglePairIsSplitInFileOrder) {
  WriteIdxPair(directory_, "t10k", kTenLabels, true);
  const auto data = Open();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(Labels(*data->train), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Labels(*data->eval), ElementsAre(8, 9));
}

TEST_F(OpenIdxTest, SubsetsSelectFromTheSplit) {
  WriteIdxPair(directory_, "digits", kTenLabels, false);
  const auto data = Open("train_subset { begin: 2 end: 5 } eval_subset { begin: 1 }");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(Labels(*data->train), ElementsAre(2, 3, 4));
  EXPECT_THAT(Labels(*data->eval), ElementsAre(9));
  Batch batch;
  ASSERT_TRUE(data->train->Read({2, 0}, &batch).ok());
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(4, 2));
  EXPECT_FLOAT_EQ(batch.features[0].numbers.data()[0], 4 / 255.0f);
  EXPECT_FLOAT_EQ(batch.features[0].numbers.data()[7], 2 / 255.0f);
}

TEST_F(OpenIdxTest, EveryShapeThatHoldsTheImage) {
  WriteIdxPair(directory_, "digits", kTenLabels, false);
  for (const Shape& shape : {Shape({2, 2, 1}), Shape({2, 2}), Shape({4})}) {
    const auto data = Open("", shape);
    ASSERT_TRUE(data.ok()) << data.status();
    Batch batch;
    ASSERT_TRUE(data->train->Read({0}, &batch).ok());
    EXPECT_EQ(batch.features[0].numbers.size(), 4);
    EXPECT_EQ(batch.features[0].numbers.shape().rank(), shape.rank() + 1);
  }
}

TEST_F(OpenIdxTest, PlainFileWinsOverItsGzip) {
  WriteIdxPair(directory_, "digits", kTenLabels, false);
  Write("digits-images-idx3-ubyte.gz", "damaged");
  EXPECT_TRUE(Open().ok());
}

TEST_F(OpenIdxTest, MissingDirectory) {
  v1::DataConfig config;
  config.set_data_dir(Path("none"));
  ExpectError(OpenDatasets(config, Images(Shape({4})), 1).status(), absl::StatusCode::kNotFound,
              {Path("none"), "No such file or directory"});
}

TEST_F(OpenIdxTest, DirectoryWithoutPairs) {
  Write("README", "nothing here");
  ExpectError(Open().status(), absl::StatusCode::kNotFound, {directory_, "found none"});
}

TEST_F(OpenIdxTest, ImagesWithoutLabels) {
  Write("train-images-idx3-ubyte", IdxContent({1, 2, 2}, "abcd"));
  ExpectInvalid(Open().status(),
                {Path("train-images-idx3-ubyte:"), "expected", Path("train-labels-idx1-ubyte")});
}

TEST_F(OpenIdxTest, LabelsWithoutImages) {
  WriteIdxPair(directory_, "t10k", kTenLabels, true);
  Write("train-labels-idx1-ubyte.gz", GzipContent(IdxContent({1}, "a")));
  ExpectInvalid(Open().status(),
                {Path("train-labels-idx1-ubyte.gz:"), "expected", Path("train-images-idx3-ubyte")});
}

TEST_F(OpenIdxTest, PairsThatCannotBeToldApart) {
  WriteIdxPair(directory_, "letters-train", kTenLabels, false);
  WriteIdxPair(directory_, "digits-train", kTenLabels, false);
  ExpectInvalid(Open().status(), {directory_, "found digits-train, letters-train"});
  WriteIdxPair(directory_, "digits-test", kTenLabels, false);
  ExpectInvalid(Open().status(), {directory_, "found digits-test, digits-train, letters-train"});
}

TEST_F(OpenIdxTest, DamagedFileIsNamed) {
  WriteIdxPair(directory_, "digits", kTenLabels, false);
  Write("digits-images-idx3-ubyte", IdxContent({10, 2, 2}, "too short"));
  ExpectError(Open().status(), absl::StatusCode::kDataLoss,
              {Path("digits-images-idx3-ubyte"), "truncated", "expected 56 bytes, found 25"});
}

TEST_F(OpenIdxTest, CountsDiffer) {
  WriteIdxPair(directory_, "digits", kTenLabels, false);
  Write("digits-labels-idx1-ubyte", IdxContent({3}, std::string(3, 0)));
  ExpectInvalid(Open().status(),
                {Path("digits-labels-idx1-ubyte"), Path("digits-images-idx3-ubyte"),
                 "expected 10 labels", "found 3"});
}

TEST_F(OpenIdxTest, ImageDoesNotFitTheModel) {
  WriteIdxPair(directory_, "digits", kTenLabels, false, 3);
  for (const Shape& shape : {Shape({2, 2, 1}), Shape({3, 3, 3}), Shape({1, 3, 3}), Shape({})}) {
    ExpectInvalid(Open("", shape).status(), {Path("digits-images-idx3-ubyte"), "model.input_shape",
                                             shape.ToString(), "found 3x3"});
  }
}

TEST_F(OpenIdxTest, LabelOutOfRange) {
  WriteIdxPair(directory_, "digits", {0, 1, 7, 2}, true);
  ExpectInvalid(Open("", Shape({4}), 7).status(), {Path("digits-labels-idx1-ubyte.gz"), "record 2",
                                                   "expected less than 7", "found 7"});
  EXPECT_TRUE(Open("", Shape({4}), 8).ok());
  EXPECT_TRUE(Open("", Shape({4}), 0).ok());
}

TEST_F(OpenIdxTest, NoRecordsLeft) {
  WriteIdxPair(directory_, "digits", {}, false);
  ExpectInvalid(Open().status(), {Path("digits-images-idx3-ubyte"), "train_subset", "found none"});
  WriteIdxPair(directory_, "digits", {1}, false);
  ExpectInvalid(Open().status(), {Path("digits-images-idx3-ubyte"), "found none"});
}

TEST_F(OpenIdxTest, SubsetOutsideTheSet) {
  WriteIdxPair(directory_, "digits", kTenLabels, false);
  ExpectInvalid(Open("train_subset { begin: 8 }").status(),
                {"data.train_subset", "end <= 8", Path("digits-images-idx3-ubyte"), "[8, 8)"});
  ExpectInvalid(Open("eval_subset { end: 3 }").status(), {"data.eval_subset", "<= 2", "[0, 3)"});
  ExpectInvalid(Open("train_subset { begin: -1 end: 2 }").status(), {"[-1, 2)"});
  ExpectInvalid(Open("train_subset { begin: 4 end: 4 }").status(), {"[4, 4)"});
  ExpectInvalid(Open("train_subset { end: -3 }").status(), {"[0, -3)"});
}

TEST(OpenGeneratedTest, DefaultSizes) {
  const auto data = OpenDatasets({}, Images(Shape({28, 28, 1})), 1);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->num_records(), 20000);
  EXPECT_EQ(data->eval->num_records(), 4000);
}

TEST(OpenGeneratedTest, SubsetsAreTheSameRecords) {
  const auto all = OpenDatasets(Config("generated { train_records: 50 eval_records: 40 }"),
                                Images(Shape({784})), 1);
  const auto part = OpenDatasets(
      Config("generated { train_records: 50 eval_records: 40 } train_subset { begin: 10 end: 30 }"),
      Images(Shape({784})), 1);
  ASSERT_TRUE(all.ok() && part.ok());
  ASSERT_EQ(part->train->num_records(), 20);
  EXPECT_EQ(part->eval->num_records(), 40);
  Batch of_all, of_part;
  ASSERT_TRUE(all->train->Read({10, 29}, &of_all).ok());
  ASSERT_TRUE(part->train->Read({0, 19}, &of_part).ok());
  EXPECT_EQ(of_all.features[0].numbers.span(), of_part.features[0].numbers.span());
  EXPECT_EQ(of_all.labels[0].span(), of_part.labels[0].span());
}

TEST(OpenGeneratedTest, Errors) {
  const auto open = [](const std::string& text, const Shape& shape, int64_t num_classes) {
    return OpenDatasets(Config(text), Images(shape, num_classes), 1).status();
  };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  ExpectError(open("", Shape({32, 32, 1}), 10), kInvalid,
              {"generated digits", "[32, 32, 1]", "found 28x28"});
  ExpectError(open("", Shape({784}), 9), kInvalid, {"generated digits", "at least 10", "found 9"});
  ExpectError(open("generated { train_records: -1 }", Shape({784}), 10), kInvalid,
              {"data.generated.train_records", "found -1"});
  ExpectError(open("generated { eval_records: 1000000000000 }", Shape({784}), 10), kInvalid,
              {"data.generated.eval_records", "found 1000000000000"});
  ExpectError(open("eval_subset { begin: 4000 }", Shape({784}), 10), kInvalid,
              {"data.eval_subset", "generated digits", "[4000, 4000)"});
}

TEST(OpenGeneratedTest, TellsWhichFeatureHoldsNoImage) {
  const RecordSchema schema = {{{"picture", Shape({32, 32})}}, {{"digit", 10}}};
  EXPECT_EQ(OpenDatasets({}, schema, 1).status(),
            absl::InvalidArgumentError("generated digits: expected images for the feature "
                                       "\"picture\" [32, 32], found 28x28"));
}

TEST(OpenGeneratedTest, OneFeatureAndOneLabel) {
  const FeatureSpec image = {"image", Shape({784})};
  const LabelSpec digit = {"digit", 10};
  const auto open = [](const RecordSchema& schema) { return OpenDatasets({}, schema, 1).status(); };
  EXPECT_TRUE(open({{image}, {digit}}).ok());
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  ExpectError(open({{image, image}, {digit}}), kInvalid,
              {"data", "one feature and one label", "image ([784]), image ([784]) and 1 labels"});
  ExpectError(open({{image}, {digit, digit}}), kInvalid, {"image ([784]) and 2 labels"});
  const FeatureSpec user = {"user", {}, FeatureKind::kId, false, 10};
  ExpectError(open({{user}, {digit}}), kInvalid, {"user (id of 10) and 1 labels"});
}

TEST(OpenRealDigitsTest, SplitOfTheTestSet) {
  if (!FileExists("../shared/data/mnist")) GTEST_SKIP() << "skipped: no ../shared/data";
  const auto data =
      OpenDatasets(Config("data_dir: '../shared/data/mnist'"), Images(Shape({28, 28, 1})), 1);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->num_records(), 8000);
  EXPECT_EQ(data->eval->num_records(), 2000);
  Batch batch;
  ASSERT_TRUE(data->train->Read({0, 1, 2, 3, 4}, &batch).ok());
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(7, 2, 1, 0, 4));
  EXPECT_THAT(batch.features[0].numbers.span(),
              Each(testing::AllOf(testing::Ge(0), testing::Le(1))));
  const float ink = std::accumulate(batch.features[0].numbers.span().begin(),
                                    batch.features[0].numbers.span().end(), 0.0f);
  EXPECT_NEAR(ink / static_cast<float>(batch.features[0].numbers.size()), 0.13, 0.07);
}

}  // namespace
}  // namespace keelson
