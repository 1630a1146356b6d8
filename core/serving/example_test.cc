#include "core/serving/example.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RecordSchema Records() {
  RecordSchema records;
  records.features = {{"user", {}, FeatureKind::kId, false, 100},
                      {"picture", {1, 2}, FeatureKind::kNumbers, false, 0},
                      {"seen", {}, FeatureKind::kBag, false, 10},
                      {"bought", {}, FeatureKind::kBag, true, 10}};
  records.labels = {{"label", 0, false}};
  return records;
}

RecordSchema OneOfNumbers() {
  RecordSchema records;
  records.features = {{"features", {1, 2}, FeatureKind::kNumbers, false, 0}};
  return records;
}

absl::StatusOr<Batch> Read(const RecordSchema& records, absl::string_view body) {
  return ReadExample(records, nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false));
}

// Why `features` is refused.
std::string Refusal(absl::string_view features, const RecordSchema& records = Records()) {
  const auto batch = Read(records, absl::StrCat(R"({"features": )", features, "}"));
  EXPECT_TRUE(absl::IsInvalidArgument(batch.status())) << batch.status();
  return std::string(batch.status().message());
}

// The four features, of which one has the value.
std::string With(absl::string_view name, absl::string_view value) {
  const std::string others =
      R"({"user": 1, "picture": [1, 2], "seen": [1], "bought": [1], )";  // the last one counts
  return absl::StrCat(others, "\"", name, "\": ", value, "}");
}

TEST(ExampleTest, FeaturesByTheirNames) {
  const auto batch =
      Read(Records(), R"({"features": {"bought": {"ids": [9, 0], "weights": [0.5, -2]},
      "user": 99, "picture": [0.25, 3], "seen": [7, 7, 1]}})");
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->size(), 1);
  EXPECT_EQ(batch->labels.size(), 1u);
  EXPECT_THAT(batch->features[0].ids, ElementsAre(99));
  EXPECT_EQ(batch->features[1].numbers.shape(), Shape({1, 1, 2}));
  EXPECT_THAT(batch->features[1].numbers.span(), ElementsAre(0.25f, 3.0f));
  EXPECT_THAT(batch->features[2].ids, ElementsAre(7, 7, 1));
  EXPECT_THAT(batch->features[2].offsets, ElementsAre(0, 3));
  EXPECT_THAT(batch->features[2].weights, IsEmpty());
  EXPECT_THAT(batch->features[3].ids, ElementsAre(9, 0));
  EXPECT_THAT(batch->features[3].weights, ElementsAre(0.5f, -2.0f));
}

TEST(ExampleTest, IdsMayBeTexts) {
  RecordSchema records;
  records.features = {{"user", {}, FeatureKind::kId}, {"seen", {}, FeatureKind::kBag, false, 10}};
  const auto batch =
      Read(records, R"({"features": {"user": "18446744073709551615", "seen": ["9", 0]}})");
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->features[0].ids, ElementsAre(18446744073709551615u));
  EXPECT_THAT(batch->features[1].ids, ElementsAre(9, 0));
  for (const char* const id : {"", "18446744073709551616", "-1", "+1", " 1", "1.0", "x"}) {
    EXPECT_EQ(Refusal(absl::StrCat(R"({"seen": [], "user": ")", id, "\"}"), records),
              absl::StrCat("features.user: expected an id from 0 to 18446744073709551615, found \"",
                           id, "\""));
  }
  EXPECT_EQ(Refusal(R"({"user": 1, "seen": ["10"]})", records),
            "features.seen[0]: expected an id from 0 to 9, found \"10\"");
}

TEST(ExampleTest, IdsWithoutWeightsHaveOne) {
  for (const char* const bag : {"[4, 5]", R"({"ids": [4, 5]})"}) {
    const auto batch = Read(Records(), absl::StrCat(R"({"features": )", With("bought", bag), "}"));
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_THAT(batch->features[3].weights, ElementsAre(1.0f, 1.0f));
  }
}

TEST(ExampleTest, ABagMayBeEmpty) {
  const auto batch = Read(Records(), absl::StrCat(R"({"features": )", With("seen", "[]"), "}"));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->features[2].ids, IsEmpty());
  EXPECT_THAT(batch->features[2].offsets, ElementsAre(0, 0));
}

TEST(ExampleTest, OneFeatureOfNumbersNeedsNoName) {
  for (const char* const features : {"[0.5, 1]", R"({"features": [0.5, 1]})"}) {
    const auto batch = Read(OneOfNumbers(), absl::StrCat(R"({"features": )", features, "}"));
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_THAT(batch->features.front().numbers.span(), ElementsAre(0.5f, 1.0f));
  }
}

TEST(ExampleTest, NumbersThatMakeNoSense) {
  const RecordSchema records = OneOfNumbers();
  EXPECT_EQ(Refusal("1", records), "features: expected a list of numbers, found 1");
  EXPECT_EQ(Refusal("[1]", records), "features: expected 2 numbers for [1, 2], found 1");
  EXPECT_EQ(Refusal("[1, 2, 3]", records), "features: expected 2 numbers for [1, 2], found 3");
  EXPECT_EQ(Refusal("[1, null]", records), "features[1]: expected a number, found null");
  EXPECT_EQ(Refusal("[[1], 2]", records), "features[0]: expected a number, found a list of 1");
  EXPECT_EQ(Refusal("[1, 1e39]", records),
            "features[1]: expected a number that a float can hold, found 1e+39");
  EXPECT_EQ(Refusal(R"({"numbers": [1, 2]})", records),
            "features: expected features ([1, 2]), found \"numbers\"");
  EXPECT_EQ(Refusal(With("picture", "[1]")),
            "features.picture: expected 2 numbers for [1, 2], found 1");
}

TEST(ExampleTest, IdsThatMakeNoSense) {
  EXPECT_EQ(Refusal(With("user", "100")), "features.user: expected an id from 0 to 99, found 100");
  EXPECT_EQ(Refusal(With("user", "-1")), "features.user: expected an id from 0 to 99, found -1");
  EXPECT_EQ(Refusal(With("user", "1.5")), "features.user: expected an id from 0 to 99, found 1.5");
  EXPECT_EQ(Refusal(With("user", "18446744073709551616")),
            "features.user: expected an id from 0 to 99, found 1.8446744073709552e+19");
  EXPECT_EQ(Refusal(With("user", "\"anna\"")),
            "features.user: expected an id from 0 to 99, found \"anna\"");
  EXPECT_EQ(Refusal(With("user", "[3]")),
            "features.user: expected an id from 0 to 99, found a list of 1");
}

TEST(ExampleTest, BagsThatMakeNoSense) {
  EXPECT_EQ(Refusal(With("seen", "3")), "features.seen: expected a list of ids, found 3");
  EXPECT_EQ(Refusal(With("seen", "[1, 10]")),
            "features.seen[1]: expected an id from 0 to 9, found 10");
  EXPECT_EQ(Refusal(With("seen", "{}")), "features.seen.ids: expected a list of ids, found none");
  EXPECT_EQ(Refusal(With("seen", R"({"ids": [1], "weights": [1]})")),
            "features.seen: expected ids alone, for it has no weights, found \"weights\"");
  EXPECT_EQ(Refusal(With("bought", R"({"ids": [1], "wieghts": [1]})")),
            "features.bought: expected ids and weights, found \"wieghts\"");
  EXPECT_EQ(Refusal(With("bought", R"({"ids": [1, 2], "weights": [1]})")),
            "features.bought.weights: expected a weight for each of the 2 ids, found 1");
  EXPECT_EQ(Refusal(With("bought", R"({"ids": [1], "weights": ["a"]})")),
            "features.bought.weights[0]: expected a number, found \"a\"");
  std::string many = "[0";
  for (int i = 0; i < 65536; ++i) many += ",0";
  EXPECT_EQ(Refusal(With("seen", many + "]")),
            "features.seen: expected at most 65536 ids, found 65537");
}

TEST(ExampleTest, FeaturesThatAreMissingOrUnknown) {
  const std::string all =
      "user (id of 100), picture ([1, 2]), seen (bag of 10 ids), bought (weighted bag of 10 ids)";
  EXPECT_EQ(Refusal("[1, 2]"),
            absl::StrCat("features: expected an object with ", all, ", found a list of 2"));
  EXPECT_EQ(Read(Records(), "{}").status().message(),
            absl::StrCat("features: expected an object with ", all, ", found none"));
  EXPECT_EQ(Refusal(R"({"user": 1})"), "features.picture: expected a list of numbers, found none");
  EXPECT_EQ(Refusal(R"({"picture": [1, 2]})"),
            "features.user: expected an id from 0 to 99, found none");
  EXPECT_EQ(Refusal(R"({"usr": 1})"), absl::StrCat("features: expected ", all, ", found \"usr\""));
}

}  // namespace
}  // namespace keelson
