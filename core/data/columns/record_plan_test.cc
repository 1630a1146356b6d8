#include "core/data/columns/record_plan.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

const RecordSchema kSchema = {{{"age", Shape({1})},
                               {"sizes", Shape({3})},
                               {"city", {}, FeatureKind::kId, false, 10},
                               {"seen", {}, FeatureKind::kBag},
                               {"rated", {}, FeatureKind::kBag, true}},
                              {{"income", 2}, {"price", 0}, {"kind", 3}, {"trust", 0, true}}};

absl::StatusOr<RecordPlan> Plan(const std::string& config) {
  v1::DataConfig data;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &data)) << config;
  return PlanRecords(data, kSchema);
}

// `sizes` has an entry, as one column of csv has one number.
constexpr char kSizes[] =
    "csv {} features { name: 'sizes' columns { number { size: 3 } "
    "separator: ' ' } } ";

std::string Error(const std::string& config) {
  return std::string(Plan(absl::StrCat(kSizes, config)).status().message());
}

TEST(RecordPlanTest, AFeatureWithoutAnEntryHasTheColumnOfItsName) {
  const auto plan = Plan("tf_record {}");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlannedColumn& sizes = plan->features[1].front();
  EXPECT_EQ(sizes.field, "the feature \"sizes\"");
  EXPECT_EQ(sizes.values.column(), "sizes");
  EXPECT_EQ(sizes.values.number().size(), 3);
  EXPECT_EQ(sizes.values.number().stddev(), 1);
  EXPECT_EQ(plan->features[2].front().values.hash().salt(), "city");
  EXPECT_EQ(plan->features[3].front().values.hash().salt(), "seen");
  EXPECT_EQ(plan->labels[0].label.column(), "income");
}

TEST(RecordPlanTest, DefaultsOfAnEntry) {
  const auto plan = Plan(absl::StrCat(kSizes, R"(
    features { name: 'seen'
      columns {} columns { column: 'a' } columns { column: 'b' vocabulary { values: 'x' } }
      columns { cross { columns: ['c', 'd'] } } }
    features { name: 'age' columns { column: 'years' } }
    labels { name: 'price' column: 'cost' })"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& seen = plan->features[3];
  EXPECT_EQ(seen[0].values.hash().salt(), "seen");
  EXPECT_EQ(seen[1].values.hash().salt(), "a");
  EXPECT_EQ(seen[2].values.vocabulary().others(), 1);
  EXPECT_EQ(seen[3].values.cross().salt(), "c*d");
  EXPECT_EQ(seen[3].field, "data.features[1].columns[3]");
  EXPECT_EQ(plan->features[0].front().values.number().size(), 1);
  EXPECT_EQ(plan->labels[1].field, "data.labels[0]");
}

TEST(RecordPlanTest, Names) {
  EXPECT_EQ(Error("features { name: 'agee' }"),
            "data.features[1].name: expected one of age, sizes, city, seen, rated, found \"agee\"");
  EXPECT_EQ(Error("features { name: 'age' } features { name: 'age' }"),
            "data.features[2].name: expected a name of its own, found \"age\"");
  EXPECT_EQ(Error("labels { name: 'x' }"),
            "data.labels[0].name: expected one of income, price, kind, trust, found \"x\"");
  EXPECT_EQ(Error("labels { name: 'kind' } labels { name: 'kind' }"),
            "data.labels[1].name: expected a name of its own, found \"kind\"");
}

TEST(RecordPlanTest, KindsGoWithTheFeature) {
  EXPECT_EQ(Error("features { name: 'age' columns { hash {} } }"),
            "data.features[1].columns[0]: expected number or missing for \"age\", [1], found hash");
  EXPECT_EQ(Error("features { name: 'city' columns { number {} } }"),
            "data.features[1].columns[0]: expected hash, vocabulary, integer, buckets or cross for "
            "\"city\", id of 10, found number");
  EXPECT_EQ(Error("features { name: 'seen' columns { missing {} } }"),
            "data.features[1].columns[0]: expected hash, vocabulary, integer, buckets or cross for "
            "\"seen\", bag of any ids, found missing");
}

TEST(RecordPlanTest, NumbersFillTheFeature) {
  EXPECT_EQ(Error("features { name: 'age' columns {} columns { missing {} } }"),
            "data.features[1]: expected 1 numbers for \"age\", [1], found 2");
  EXPECT_EQ(Error("features { name: 'city' columns {} columns { column: 'a' } }"),
            "data.features[1]: expected one column for the id \"city\", found 2");
  EXPECT_EQ(
      Plan("csv {}").status().message(),
      "the feature \"sizes\": expected a separator, or columns for each number, as a field of "
      "csv is one value, found 3 numbers of one column");
  EXPECT_TRUE(Plan("csv {} features { name: 'sizes' columns { column: 'a' } columns { column: 'b' "
                   "} columns { column: 'b' missing {} } }")
                  .ok());
}

TEST(RecordPlanTest, Numbers) {
  const auto error = [](const std::string& number) {
    return Error(absl::StrCat("features { name: 'age' columns { number { ", number, " } } }"));
  };
  const std::string path = "data.features[1].columns[0].number";
  EXPECT_EQ(error("stddev: 0"), path + ".stddev: expected > 0, found 0");
  EXPECT_EQ(error("stddev: inf"), path + ".stddev: expected > 0, found inf");
  EXPECT_EQ(error("mean: nan"), path + ".mean: expected a finite number, found nan");
  EXPECT_EQ(error("missing: inf"), path + ".missing: expected a finite number, found inf");
  EXPECT_EQ(error("min: -inf"), path + ".min: expected a finite number, found -inf");
  EXPECT_EQ(error("max: inf"), path + ".max: expected a finite number, found inf");
  EXPECT_EQ(error("min: 3 max: 2"), path + ".max: expected >= 3 (its min), found 2");
  EXPECT_EQ(error("size: -1"), path + ".size: expected 1 to 2147483647, found -1");
}

TEST(RecordPlanTest, IdsFitTheEmbedding) {
  const auto error = [](const std::string& column) {
    return Error(absl::StrCat("features { name: 'city' columns { ", column, " } }"));
  };
  const std::string path = "data.features[1].columns[0]";
  EXPECT_EQ(error("vocabulary { values: ['a', 'b'] others: 9 }"),
            path +
                ": expected an embedding of 11 rows or more for \"city\", for 2 values and 9 for "
                "others, found 10");
  EXPECT_EQ(error("vocabulary { values: ['a', 'b'] others: 8 }"), "");
  EXPECT_EQ(error("buckets { boundaries: [1, 2, 3, 4, 5, 6, 7, 8, 9] }"),
            path +
                ": expected an embedding of 11 rows or more for \"city\", for 10 buckets and one "
                "for what is missing, found 10");
  EXPECT_EQ(error("integer { missing: 10 }"),
            path + ".integer.missing: expected less than 10, the rows of the embedding, found 10");
  EXPECT_EQ(error("integer { missing: 9 }"), "");
}

TEST(RecordPlanTest, KindsOfIds) {
  const auto error = [](const std::string& column) {
    return Error(absl::StrCat("features { name: 'rated' columns { ", column, " } }"));
  };
  const std::string path = "data.features[1].columns[0]";
  EXPECT_EQ(error("vocabulary {}"),
            path + ".vocabulary: expected one of values and file, found none");
  EXPECT_EQ(error("vocabulary { values: 'a' file: 'b' }"),
            path + ".vocabulary: expected one of values and file, found both");
  EXPECT_EQ(error("vocabulary { values: ['a', 'b', 'a'] }"),
            path + ".vocabulary.values[2]: expected a text of its own, found \"a\"");
  EXPECT_EQ(error("vocabulary { values: '' }"),
            path + ".vocabulary.values[0]: expected a text of its own, found \"\"");
  EXPECT_EQ(error("vocabulary { values: 'a' others: -1 }"),
            path + ".vocabulary.others: expected >= 0, found -1");
  EXPECT_EQ(error("buckets {}"), path + ".buckets.boundaries: expected one or more, found none");
  EXPECT_EQ(error("buckets { boundaries: [1, 3, 3] }"),
            path + ".buckets.boundaries[2]: expected > 3, as they ascend, found 3");
  EXPECT_EQ(error("buckets { boundaries: nan }"),
            path + ".buckets.boundaries[0]: expected a finite number, found nan");
  EXPECT_EQ(error("cross { columns: 'a' }"),
            path + ".cross.columns: expected two or more, found 1");
  EXPECT_EQ(error("cross { columns: ['a', ''] }"),
            path + ".cross.columns[1]: expected a column's name, found \"\"");
  EXPECT_EQ(error("column: 'c' cross { columns: ['a', 'b'] }"),
            path + ".column: expected none with cross, which names its columns, found \"c\"");
}

TEST(RecordPlanTest, FieldsBesideTheKind) {
  const auto error = [](const std::string& feature, const std::string& column) {
    return Error(absl::StrCat("features { name: '", feature, "' columns { ", column, " } }"));
  };
  const std::string path = "data.features[1].columns[0]";
  EXPECT_EQ(error("city", "separator: '|'"),
            path + ".separator: expected none of what has one value, found \"|\"");
  EXPECT_EQ(error("rated", "separator: '|' cross { columns: ['a', 'b'] }"),
            path + ".separator: expected none of what has one value, found \"|\"");
  EXPECT_EQ(error("seen", "weight_separator: ':'"),
            path + ".weight_separator: expected none but of values of a weighted bag, found \":\"");
  EXPECT_EQ(error("city", "max_values: 1"),
            path + ".max_values: expected none but of values of a bag, found 1");
  EXPECT_EQ(error("seen", "max_values: -1"), path + ".max_values: expected >= 0, found -1");
  EXPECT_EQ(error("seen", "keep_first: true"),
            path + ".keep_first: expected false without max_values, found true");
  EXPECT_EQ(error("rated", "separator: '|' weight_separator: ':' max_values: 2 keep_first: true"),
            "");
}

TEST(RecordPlanTest, Labels) {
  const auto error = [](const std::string& name, const std::string& label) {
    return Error(absl::StrCat("labels { name: '", name, "' ", label, " }"));
  };
  EXPECT_EQ(error("income", "values: ['a', 'b'] at_least: 1"),
            "data.labels[0]: expected at most one of values and at_least, found both");
  EXPECT_EQ(error("income", "values: ['a', 'b', 'c']"),
            "data.labels[0].values: expected 2 (the classes), found 3");
  EXPECT_EQ(error("income", "values: ['a', 'a']"),
            "data.labels[0].values[1]: expected a text of its own, found \"a\"");
  EXPECT_EQ(error("kind", "at_least: 1"),
            "data.labels[0].at_least: expected none of a label of 3 classes, found 1");
  EXPECT_EQ(error("income", "at_least: nan"),
            "data.labels[0].at_least: expected a finite number, found nan");
  EXPECT_EQ(error("income", "missing: 2"), "data.labels[0].missing: expected 0 or 1, found 2");
  EXPECT_EQ(error("kind", "missing: 1.5"),
            "data.labels[0].missing: expected a class from 0 to 2, found 1.5");
  EXPECT_EQ(error("trust", "missing: -1"),
            "data.labels[0].missing: expected a weight >= 0, found -1");
  EXPECT_EQ(error("price", "missing: -1"), "");
}

}  // namespace
}  // namespace keelson
