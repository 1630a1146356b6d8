#include "core/data/libffm_format.h"

#include "core/data/record_format_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const FeatureSpec kField0 = {"field0", {}, FeatureKind::kBag, true, 0};
const FeatureSpec kField1 = {"field1", {}, FeatureKind::kBag, false, 100};
const FeatureSpec kField2 = {"field2", {}, FeatureKind::kId, false, 0};
const FeatureSpec kField3 = {"field3", Shape({2})};

absl::StatusOr<std::unique_ptr<const RecordFormat>> OpenLibffm(const RecordSchema& schema,
                                                               const std::string& config = "") {
  v1::DataConfig::Libffm libffm;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &libffm));
  return NewLibffmFormat(libffm, schema);
}

std::unique_ptr<const RecordFormat> LibffmOf(std::vector<FeatureSpec> features,
                                             const std::string& config = "") {
  auto format = OpenLibffm({std::move(features), {{"label", 2}}}, config);
  EXPECT_TRUE(format.ok()) << format.status();
  return *std::move(format);
}

TEST(LibffmFormatTest, AFieldIsAFeature) {
  const auto format = LibffmOf({kField3, kField1, kField2, kField0});
  const Batch batch =
      ParseLines(*format, {"1 0:7:0.5 1:3:1 2:18446744073709551615:1 3:5:2 3:4:-1",
                           "-1\t2:8:1  1:2:1 0:1:1e1 1:2:1 0:1:2 # 1:9:9", "0 9:1:7 2:0:1"});
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(2, -1, 0, 0, 0, 0));
  EXPECT_THAT(batch.features[1].ids, ElementsAre(3, 2, 2));
  EXPECT_THAT(batch.features[1].offsets, ElementsAre(0, 1, 3, 3));
  EXPECT_THAT(batch.features[1].weights, IsEmpty());
  EXPECT_THAT(batch.features[2].ids, ElementsAre(18446744073709551615u, 8, 0));
  EXPECT_THAT(batch.features[3].ids, ElementsAre(7, 1, 1));
  EXPECT_THAT(batch.features[3].weights, ElementsAre(0.5, 10, 2));
  EXPECT_THAT(batch.features[3].offsets, ElementsAre(0, 1, 3, 3));
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(1, 0, 0));
}

TEST(LibffmFormatTest, MalformedLines) {
  const auto format = LibffmOf({kField0, kField1});
  EXPECT_EQ(LineErrorText(*format, ""), "1: expected a label, found the end of the line");
  EXPECT_EQ(LineErrorText(*format, "7 0:1:1"), "1: expected a label of -1, 0, 1, found \"7\"");
  EXPECT_EQ(LineErrorText(*format, "1 0:1:1 1:1"), "9: expected FIELD:INDEX:VALUE, found \"1:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 x:1:1"), "3: expected FIELD:INDEX:VALUE, found \"x:1:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 0::1"), "3: expected FIELD:INDEX:VALUE, found \"0::1\"");
  EXPECT_EQ(LineErrorText(*format, "1 0:-1:1"), "3: expected FIELD:INDEX:VALUE, found \"0:-1:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 0"), "3: expected FIELD:INDEX:VALUE, found \"0\"");
  EXPECT_EQ(LineErrorText(*format, "1 0:1:nan"),
            "7: expected a finite number as the value, found \"nan\"");
  EXPECT_EQ(LineErrorText(*format, "1 0:1:1:1"),
            "7: expected a finite number as the value, found \"1:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 0:1:1 1:100:1"),
            "9: expected an index of 99 or less, found \"1:100:1\"");
  EXPECT_EQ(LineErrorText(*format, "1 0:1:1 1:1:0.5"),
            "9: expected the value 1, as \"field1\" has no weights, found \"1:1:0.5\"");
  EXPECT_EQ(LineErrorText(*format, "1 7:1:x"),
            "7: expected a finite number as the value, found \"x\"");
}

TEST(LibffmFormatTest, HowManyTriplesAFieldHas) {
  const auto id = LibffmOf({kField2});
  EXPECT_EQ(LineErrorText(*id, "1 0:1:1"),
            "8: expected one triple for \"field2\", any id, found none");
  EXPECT_EQ(LineErrorText(*id, "1 2:1:1 2:5:1"),
            "9: expected one triple for \"field2\", any id, found one more");
  const auto numbers = LibffmOf({kField3});
  EXPECT_EQ(LineErrorText(*numbers, "1 3:1:1"),
            "8: expected none or 2 triples for \"field3\", [2], found 1");
  EXPECT_EQ(LineErrorText(*numbers, "1 3:1:1 3:2:1 3:3:1"),
            "15: expected none or 2 triples for \"field3\", [2], found one more");
}

TEST(LibffmFormatTest, ModelsThatTakeSomethingElse) {
  const auto error_of = [](const RecordSchema& schema, const std::string& config = "") {
    return std::string(OpenLibffm(schema, config).status().message());
  };
  for (const char* name : {"features", "field", "field-1", "field01", "field1048576", "field1x"}) {
    EXPECT_EQ(error_of({{{name, {}, FeatureKind::kBag}}, {{"label", 2}}}),
              absl::StrCat("data.libffm: expected features \"field0\", \"field1\", ..., found ",
                           name, " (bag of any ids)"));
  }
  EXPECT_EQ(error_of({{kField1}, {{"clicked", 2}}}),
            "data.libffm: expected a model with the one label \"label\", found \"clicked\"");
  EXPECT_EQ(error_of({{kField1}, {{"label", 2}}}, "label_values: 1"),
            "data.libffm.label_values: expected 2 (the classes), found 1");
  EXPECT_EQ(error_of({{kField1}, {}}), "");
}

TEST(LibffmFormatTest, TheFingerprintIsThatOfWhatMakesARecord) {
  const uint64_t fingerprint = LibffmOf({kField1})->fingerprint();
  EXPECT_EQ(LibffmOf({kField1})->fingerprint(), fingerprint);
  EXPECT_NE(LibffmOf({kField2})->fingerprint(), fingerprint);
  EXPECT_NE(LibffmOf({kField1, kField2})->fingerprint(), fingerprint);
  EXPECT_NE(LibffmOf({kField1}, "label_values: [1, 2]")->fingerprint(), fingerprint);
}

}  // namespace
}  // namespace keelson
