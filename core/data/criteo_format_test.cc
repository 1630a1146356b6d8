#include "core/data/criteo_format.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/data/columns/value_hash.h"
#include "core/data/record_format_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

const FeatureSpec kNumbersFeature = {"numbers", Shape({13})};
const FeatureSpec kMissingFeature = {"missing", Shape({13})};
const FeatureSpec kC1 = {"c1", {}, FeatureKind::kId};
const FeatureSpec kC2 = {"c2", {}, FeatureKind::kId};
const FeatureSpec kC26 = {"c26", {}, FeatureKind::kId};
const LabelSpec kLabel2 = {"label", 2};

absl::StatusOr<std::unique_ptr<const RecordFormat>> OpenCriteo(const RecordSchema& schema,
                                                               const std::string& config = "") {
  v1::DataConfig::Criteo criteo;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &criteo));
  return NewCriteoFormat(criteo, schema);
}

std::unique_ptr<const RecordFormat> CriteoOf(const std::vector<FeatureSpec>& features,
                                             const std::string& config = "") {
  auto format = OpenCriteo({features, {kLabel2}}, config);
  EXPECT_TRUE(format.ok()) << format.status();
  return *std::move(format);
}

// A line with 0 and "68fd1e64" in all columns but those that are set.
class CriteoLine {
 public:
  CriteoLine() : columns_(14, "0") { columns_.resize(40, "68fd1e64"); }

  CriteoLine& Set(size_t column, const std::string& text) {
    columns_[column] = text;
    return *this;
  }
  std::string Text() const { return absl::StrJoin(columns_, "\t"); }

 private:
  std::vector<std::string> columns_;
};

TEST(CriteoFormatTest, CountsAreLogarithms) {
  const Batch batch = ParseLines(
      *CriteoOf({kMissingFeature, kNumbersFeature}),
      {CriteoLine().Set(1, "1").Set(2, "-3").Set(3, "").Set(4, "1023").Set(5, "5000000").Text()});
  const float* const missing = batch.features[0].numbers.data();
  const float* const numbers = batch.features[1].numbers.data();
  EXPECT_THAT(std::vector<float>(numbers, numbers + 5),
              ElementsAre(FloatNear(0.693147f, 1e-6f), 0, 0, FloatNear(6.931472f, 1e-6f),
                          FloatNear(15.424949f, 1e-5f)));
  EXPECT_THAT(std::vector<float>(missing, missing + 5), ElementsAre(0, 0, 1, 0, 0));
}

TEST(CriteoFormatTest, StringsAreHashedWithTheFieldsName) {
  const Batch batch = ParseLines(
      *CriteoOf({kC26, kC1}), {CriteoLine().Text(), CriteoLine().Set(14, "").Set(39, "").Text()});
  EXPECT_THAT(batch.features[0].ids, ElementsAre(HashValue("68fd1e64", FieldSalt("c26")),
                                                 HashValue("", FieldSalt("c26"))));
  EXPECT_THAT(batch.features[1].ids,
              ElementsAre(0xc8090938e55e3fb0u, HashValue("", FieldSalt("c1"))));
}

TEST(CriteoFormatTest, StringsOfAnyLength) {
  for (const std::string text : {"a", "1234567", "12345678", "123456789", "a much longer one"}) {
    const Batch batch =
        ParseLines(*CriteoOf({kC1, kC26}), {CriteoLine().Set(14, text).Set(39, text).Text()});
    EXPECT_EQ(batch.features[0].ids[0], HashValue(text, FieldSalt("c1")));
    EXPECT_EQ(batch.features[1].ids[0], HashValue(text, FieldSalt("c26")));
  }
}

TEST(CriteoFormatTest, FieldsMayShareASalt) {
  const auto format =
      CriteoOf({kC1, kC2}, "salts { field: 'c1' salt: 's' } salts { field: 'c2' salt: 's' }");
  const Batch batch = ParseLines(*format, {CriteoLine().Text()});
  EXPECT_EQ(batch.features[0].ids[0], HashValue("68fd1e64", FieldSalt("s")));
  EXPECT_EQ(batch.features[1].ids[0], batch.features[0].ids[0]);
}

TEST(CriteoFormatTest, EmbeddingsWithRowsGetBuckets) {
  FeatureSpec few = kC1;
  few.num_ids = 1000;
  const Batch batch = ParseLines(*CriteoOf({few}), {CriteoLine().Text()});
  EXPECT_THAT(batch.features[0].ids,
              ElementsAre(IdOfHash(HashValue("68fd1e64", FieldSalt("c1")), 1000)));
}

TEST(CriteoFormatTest, Labels) {
  const auto format = CriteoOf({kC1});
  EXPECT_THAT(
      ParseLines(*format, {CriteoLine().Set(0, "1").Text(), CriteoLine().Text()}).labels[0].span(),
      ElementsAre(1, 0));
  for (const char* label : {"", "2", "01", "-1", "x"}) {
    EXPECT_THAT(LineErrorText(*format, CriteoLine().Set(0, label).Text()),
                HasSubstr("1: expected 0 or 1 as the label, found "));
  }
  EXPECT_TRUE(ParseLines(**OpenCriteo({{kC1}, {}}), {CriteoLine().Text()}).labels.empty());
}

TEST(CriteoFormatTest, AnotherNumberOfColumns) {
  const auto format = CriteoOf({kC1});
  const std::string line = CriteoLine().Text();
  const std::string missing_label = line.substr(2);
  EXPECT_EQ(LineErrorText(*format, ""), "1: expected 40 columns, found 1");
  EXPECT_EQ(LineErrorText(*format, "0\t1\t2"), "6: expected 40 columns, found 3");
  EXPECT_EQ(LineErrorText(*format, missing_label),
            absl::StrCat(missing_label.size() + 1, ": expected 40 columns, found 39"));
  EXPECT_EQ(LineErrorText(*format, line + "\t"),
            absl::StrCat(line.size() + 2, ": expected 40 columns, found 41"));
  EXPECT_EQ(LineErrorText(*format, line.substr(0, 28)), "29: expected 40 columns, found 15");
}

TEST(CriteoFormatTest, ANumberThatIsNone) {
  const auto format = CriteoOf({kC1});
  EXPECT_EQ(LineErrorText(*format, CriteoLine().Set(3, "1.5").Text()),
            "7: expected a whole number or nothing as number 3, found \"1.5\"");
  EXPECT_EQ(LineErrorText(*format, CriteoLine().Set(13, "abc").Text()),
            "27: expected a whole number or nothing as number 13, found \"abc\"");
  for (const char* text : {"-", "--1", "+1", "1234567890123456789", "1e3", " 1"}) {
    EXPECT_THAT(LineErrorText(*format, CriteoLine().Set(2, text).Text()), HasSubstr("as number 2"));
  }
}

TEST(CriteoFormatTest, ModelsThatTakeSomethingElse) {
  const auto expect_error = [](const RecordSchema& schema, const std::string& text,
                               const std::string& config = "") {
    const absl::Status status = OpenCriteo(schema, config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  expect_error({{{"c27", {}, FeatureKind::kId}}, {kLabel2}}, "\"c27\"");
  expect_error({{{"c1", {}, FeatureKind::kBag}}, {kLabel2}}, "\"c1\"");
  expect_error({{{"numbers", Shape({12})}}, {kLabel2}}, "\"numbers\", [12]");
  expect_error({{kC1}, {{"clicked", 2}}}, "the label \"label\", 0 or 1, found \"clicked\"");
  expect_error({{kC1}, {{"label", 3}}}, "of 3 classes");
  expect_error({{kC1}, {kLabel2}},
               "data.criteo.salts[0].field: expected one of c1 to c26 that has no salt yet, found "
               "\"x\"",
               "salts { field: 'x' }");
  expect_error({{kC1}, {kLabel2}}, "data.criteo.salts[1].field",
               "salts { field: 'c1' salt: 'a' } salts { field: 'c1' salt: 'b' }");
}

}  // namespace
}  // namespace keelson
