#include "core/data/libsvm_format.h"

#include "core/data/record_format_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const FeatureSpec kWeighted = {"features", {}, FeatureKind::kBag, true, 0};
const FeatureSpec kUnweighted = {"features", {}, FeatureKind::kBag, false, 0};
const FeatureSpec kFewIds = {"features", {}, FeatureKind::kBag, true, 10};
const FeatureSpec kFourNumbers = {"features", Shape({4})};

absl::StatusOr<std::unique_ptr<const RecordFormat>> OpenLibsvm(const RecordSchema& schema,
                                                               const std::string& config = "") {
  v1::DataConfig::Libsvm libsvm;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &libsvm));
  return NewLibsvmFormat(libsvm, schema);
}

std::unique_ptr<const RecordFormat> LibsvmOf(const FeatureSpec& feature, int64_t classes = 2,
                                             const std::string& config = "") {
  auto format = OpenLibsvm({{feature}, {{"label", classes}}}, config);
  EXPECT_TRUE(format.ok()) << format.status();
  return *std::move(format);
}

TEST(LibsvmFormatTest, AWeightedBagHasIndicesAndValues) {
  const Batch batch = ParseLines(*LibsvmOf(kWeighted),
                                 {"-1 3:1 6:0.5 17:-2e1 ", "+1", "1\t0:1  18446744073709551615:1"});
  EXPECT_THAT(batch.features[0].ids, ElementsAre(3, 6, 17, 0, 18446744073709551615u));
  EXPECT_THAT(batch.features[0].weights, ElementsAre(1, 0.5, -20, 1, 1));
  EXPECT_THAT(batch.features[0].offsets, ElementsAre(0, 3, 3, 5));
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(0, 1, 1));
}

TEST(LibsvmFormatTest, ABagWithoutWeightsHasValuesOfOne) {
  const auto format = LibsvmOf(kUnweighted);
  const Batch batch = ParseLines(*format, {"0 3:1 6:1.0"});
  EXPECT_THAT(batch.features[0].ids, ElementsAre(3, 6));
  EXPECT_THAT(batch.features[0].weights, IsEmpty());
  EXPECT_EQ(LineErrorText(*format, "0 3:1 6:2"),
            "7: expected the value 1, as the bag has no weights, found \"6:2\"");
}

TEST(LibsvmFormatTest, NumbersHaveZerosWhereTheLineHasNothing) {
  const auto format = LibsvmOf(kFourNumbers, 0);
  const Batch batch = ParseLines(*format, {"-2.5 1:7 4:8", "0 2:5"});
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(7, 0, 0, 8, 0, 5, 0, 0));
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(-2.5, 0));
  EXPECT_EQ(LineErrorText(*format, "0 0:1"),
            "3: expected an index of 1 or more, as they ascend, found \"0:1\"");
  EXPECT_EQ(LineErrorText(*format, "0 5:1"), "3: expected an index of 4 or less, found \"5:1\"");
}

TEST(LibsvmFormatTest, ACommentEndsTheLine) {
  EXPECT_THAT(ParseLines(*LibsvmOf(kWeighted), {"1 2:3 # 4:5"}).features[0].ids, ElementsAre(2));
}

TEST(LibsvmFormatTest, IndicesAscend) {
  const auto format = LibsvmOf(kWeighted);
  EXPECT_EQ(LineErrorText(*format, "1 5:1 3:1"),
            "7: expected an index of 6 or more, as they ascend, found \"3:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 5:1 5:1"),
            "7: expected an index of 6 or more, as they ascend, found \"5:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 18446744073709551615:1 0:1"),
            "26: expected the end of the line, found \"0:1\"");
}

TEST(LibsvmFormatTest, IndicesThatNoEmbeddingHasARowFor) {
  const auto format = LibsvmOf(kFewIds);
  EXPECT_THAT(ParseLines(*format, {"1 9:1"}).features[0].ids, ElementsAre(9));
  EXPECT_EQ(LineErrorText(*format, "1 9:1 10:1"),
            "7: expected an index of 9 or less, found \"10:1\"");
}

TEST(LibsvmFormatTest, MalformedLines) {
  const auto format = LibsvmOf(kWeighted);
  EXPECT_EQ(LineErrorText(*format, ""), "1: expected a label, found the end of the line");
  EXPECT_EQ(LineErrorText(*format, "  "), "3: expected a label, found the end of the line");
  EXPECT_EQ(LineErrorText(*format, "x 1:1"), "1: expected a label, found \"x\"");
  EXPECT_EQ(LineErrorText(*format, "1:1 2:1"), "1: expected a label, found \"1:1\"");
  EXPECT_EQ(LineErrorText(*format, "nan 1:1"), "1: expected a label, found \"nan\"");
  EXPECT_EQ(LineErrorText(*format, "1 qid:3 1:1"), "3: expected INDEX:VALUE, found \"qid:3\"");
  EXPECT_EQ(LineErrorText(*format, "1 7"), "3: expected INDEX:VALUE, found \"7\"");
  EXPECT_EQ(LineErrorText(*format, "1 -7:1"), "3: expected INDEX:VALUE, found \"-7:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 18446744073709551616:1"),
            "3: expected INDEX:VALUE, found \"18446744073709551616:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 7:"),
            "5: expected a finite number as the value, found the end of the line");
  EXPECT_EQ(LineErrorText(*format, "1 7:1x"),
            "5: expected a finite number as the value, found \"1x\"");
  EXPECT_EQ(LineErrorText(*format, "1 7:inf"),
            "5: expected a finite number as the value, found \"inf\"");
  EXPECT_EQ(LineErrorText(*format, "1 2:3:4"),
            "5: expected a finite number as the value, found \"3:4\"");
  EXPECT_EQ(LineErrorText(*format, std::string("1 \0:1", 5)),
            "3: expected INDEX:VALUE, found \"\\x00:1\"");
}

TEST(LibsvmFormatTest, LabelsAreClasses) {
  EXPECT_EQ(LineErrorText(*LibsvmOf(kWeighted), "2 1:1"),
            "1: expected a label of -1, 0, 1, found \"2\"");
  EXPECT_EQ(LineErrorText(*LibsvmOf(kWeighted), "0.5 1:1"),
            "1: expected a label of -1, 0, 1, found \"0.5\"");
  const auto three = LibsvmOf(kWeighted, 3);
  EXPECT_THAT(ParseLines(*three, {"0", "2"}).labels[0].span(), ElementsAre(0, 2));
  EXPECT_EQ(LineErrorText(*three, "-1"), "1: expected a class from 0 to 2, found \"-1\"");
  const auto named = LibsvmOf(kWeighted, 2, "label_values: [2, 1]");
  EXPECT_THAT(ParseLines(*named, {"1", "2", "2"}).labels[0].span(), ElementsAre(1, 0, 0));
  EXPECT_EQ(LineErrorText(*named, "0"), "1: expected a label of 2, 1, found \"0\"");
}

TEST(LibsvmFormatTest, AModelMayTakeNoLabel) {
  const auto format = OpenLibsvm({{kWeighted}, {}});
  EXPECT_TRUE(ParseLines(**format, {"7 1:1"}).labels.empty());
}

TEST(LibsvmFormatTest, ModelsThatTakeSomethingElse) {
  const auto expect_error = [](const RecordSchema& schema, const std::string& text,
                               const std::string& config = "") {
    const absl::Status status = OpenLibsvm(schema, config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  const LabelSpec label = {"label", 2};
  expect_error({{kWeighted, {"user", {}, FeatureKind::kId}}, {label}}, "the one feature");
  expect_error({{{"other", {}, FeatureKind::kBag}}, {label}},
               "data.libsvm: expected a model with "
               "the one feature \"features\"");
  expect_error({{{"features", Shape({2, 2})}}, {label}}, "the one feature");
  expect_error({{{"features", {}, FeatureKind::kId}}, {label}}, "the one feature");
  expect_error({{kWeighted}, {{"clicked", 2}}}, "the one label \"label\", found \"clicked\"");
  expect_error({{kWeighted}, {{"label", 0, true}}}, "as weights");
  expect_error({{kWeighted}, {label}},
               "data.libsvm.label_values: expected 2 (the classes), found 1", "label_values: 1");
  expect_error({{kWeighted}, {{"label", 0}}}, "expected none (the model's label is a number)",
               "label_values: 1");
}

TEST(LibsvmFormatTest, TheFingerprintIsThatOfWhatMakesARecord) {
  const uint64_t fingerprint = LibsvmOf(kWeighted)->fingerprint();
  EXPECT_EQ(LibsvmOf(kWeighted)->fingerprint(), fingerprint);
  EXPECT_NE(LibsvmOf(kUnweighted)->fingerprint(), fingerprint);
  EXPECT_NE(LibsvmOf(kFewIds)->fingerprint(), fingerprint);
  EXPECT_NE(LibsvmOf(kWeighted, 3)->fingerprint(), fingerprint);
  EXPECT_NE(LibsvmOf(kWeighted, 2, "label_values: [1, 2]")->fingerprint(), fingerprint);
}

}  // namespace
}  // namespace keelson
