#include "core/data/columns/record_maker.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/data/columns/value_hash.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What a source gives of one column; the memory that ColumnValue shows.
struct Value {
  Value() = default;
  Value(const char* one) : value(ColumnValue::Text(one)) {}  // NOLINT: as in a file
  Value(std::vector<absl::string_view> list)                 // NOLINT
      : texts(std::move(list)), value(ColumnValue::Texts(texts)) {}
  Value(std::vector<int64_t> list)  // NOLINT
      : integers(std::move(list)), value(ColumnValue::Integers(integers)) {}
  Value(std::vector<float> list)  // NOLINT
      : numbers(std::move(list)), value(ColumnValue::Numbers(numbers)) {}

  std::vector<absl::string_view> texts;
  std::vector<int64_t> integers;
  std::vector<float> numbers;
  ColumnValue value;
};

using Texts = std::vector<absl::string_view>;
using Integers = std::vector<int64_t>;
using Numbers = std::vector<float>;

class RecordMakerTest : public testing::Test {
 protected:
  // A model's features and labels, made of the columns of their names unless `config` says more.
  void Make(const RecordSchema& schema, const std::string& config) {
    const auto maker = TryMake(schema, config);
    ASSERT_TRUE(maker.ok()) << maker.status();
  }
  absl::StatusOr<bool> TryMake(const RecordSchema& schema, const std::string& config) {
    v1::DataConfig data;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("tf_record {} data_dir: '/data' ", config), &data));
    auto maker = RecordMaker::Create(data, schema, &files_);
    if (!maker.ok()) return maker.status();
    maker_ = *std::move(maker);
    return true;
  }

  // One record of these values of the maker's columns.
  Batch Fill(const std::vector<Value>& values) {
    Batch batch;
    Resize(1, maker_->schema(), &batch);
    ColumnError error;
    EXPECT_TRUE(maker_->Fill(ValuesOf(values), 0, &batch, &error))
        << error.expected << ", " << error.found;
    return batch;
  }
  std::vector<float> FillNumbers(const std::vector<Value>& values) {
    const Batch batch = Fill(values);
    const Tensor& numbers = batch.features[0].numbers;
    return {numbers.span().begin(), numbers.span().end()};
  }
  std::vector<uint64_t> FillIds(const std::vector<Value>& values) {
    return Fill(values).features[0].ids;
  }
  // "COLUMN: expected …, found …".
  std::string ErrorOf(const std::vector<Value>& values) {
    Batch batch;
    Resize(1, maker_->schema(), &batch);
    ColumnError error;
    if (maker_->Fill(ValuesOf(values), 0, &batch, &error)) return "none";
    for (const FeatureValues& feature : batch.features) {
      EXPECT_THAT(feature.weights, IsEmpty());
      if (feature.offsets.empty()) continue;
      EXPECT_THAT(feature.ids, IsEmpty());
    }
    return absl::StrCat(maker_->columns()[error.column], ": expected ", error.expected, ", found ",
                        error.found);
  }
  static std::vector<ColumnValue> ValuesOf(const std::vector<Value>& values) {
    std::vector<ColumnValue> all;
    for (const Value& value : values) all.push_back(value.value);
    return all;
  }

  MemoryFileSystem files_;
  std::unique_ptr<const RecordMaker> maker_;
};

RecordSchema Dense(int64_t size) { return {{{"x", Shape({size})}}, {}}; }
RecordSchema Id(int64_t num_ids = 0) { return {{{"x", {}, FeatureKind::kId, false, num_ids}}, {}}; }
RecordSchema Bag(bool weighted = false, int64_t num_ids = 0) {
  return {{{"x", {}, FeatureKind::kBag, weighted, num_ids}}, {}};
}
uint64_t HashOf(absl::string_view text, absl::string_view salt = "x") {
  return HashValue(text, FieldSalt(salt));
}

TEST_F(RecordMakerTest, NumbersOfAllForms) {
  Make(Dense(1), "");
  EXPECT_THAT(maker_->columns(), ElementsAre("x"));
  EXPECT_THAT(FillNumbers({"-1.5e1"}), ElementsAre(-15));
  EXPECT_THAT(FillNumbers({Integers{3}}), ElementsAre(3));
  EXPECT_THAT(FillNumbers({Numbers{0.5f}}), ElementsAre(0.5f));
  EXPECT_THAT(FillNumbers({Texts{"7"}}), ElementsAre(7));
  for (const Value& missing : {Value(), Value(""), Value(Integers{}), Value(Numbers{kNan})}) {
    EXPECT_THAT(FillNumbers({missing}), ElementsAre(0));
  }
}

TEST_F(RecordMakerTest, NumbersThatAreNone) {
  Make(Dense(1), "");
  EXPECT_EQ(ErrorOf({"x1"}), "x: expected a number, found \"x1\"");
  EXPECT_EQ(ErrorOf({"1 2"}), "x: expected a number, found \"1 2\"");
  EXPECT_EQ(ErrorOf({Numbers{std::numeric_limits<float>::infinity()}}),
            "x: expected a number, found the number inf");
  EXPECT_EQ(ErrorOf({Numbers{1, 2}}), "x: expected one number, found 2");
  Make(Dense(1), "features { name: 'x' columns { number { stddev: 1e-30 } } }");
  EXPECT_EQ(ErrorOf({"1e30"}),
            "x: expected a number that stays finite as (x - mean) / stddev, found \"1e30\"");
}

TEST_F(RecordMakerTest, ANumberIsTransformedInOrder) {
  Make(Dense(1),
       "features { name: 'x' columns { number { log: true mean: 1 stddev: 2 min: -1 max: 2 "
       "missing: -5 } } }");
  EXPECT_FLOAT_EQ(FillNumbers({"5"})[0], (std::log(6.0f) - 1) / 2);
  EXPECT_FLOAT_EQ(FillNumbers({"5.5"})[0], (std::log(6.5f) - 1) / 2);
  EXPECT_FLOAT_EQ(FillNumbers({"2000"})[0], 2);
  EXPECT_FLOAT_EQ(FillNumbers({"-1"})[0], (-std::log(2.0f) - 1) / 2);
  EXPECT_FLOAT_EQ(FillNumbers({"-5000"})[0], -1);
  EXPECT_FLOAT_EQ(FillNumbers({""})[0], -5);
}

TEST_F(RecordMakerTest, NumbersOfSeveralColumns) {
  Make(Dense(4),
       "features { name: 'x' columns { column: 'a' number { size: 2 missing: 9 } separator: '|' } "
       "columns { column: 'b' } columns { column: 'b' missing {} } }");
  EXPECT_THAT(maker_->columns(), ElementsAre("a", "b"));
  EXPECT_EQ(maker_->needed_by(1), "data.features[0].columns[1]");
  EXPECT_THAT(FillNumbers({"1| 2", "3"}), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(FillNumbers({"1|", ""}), ElementsAre(1, 9, 0, 1));
  EXPECT_THAT(FillNumbers({Value(), Numbers{4}}), ElementsAre(9, 9, 4, 0));
  EXPECT_THAT(FillNumbers({"", Numbers{kNan}}), ElementsAre(9, 9, 0, 1));
  EXPECT_THAT(FillNumbers({Texts{"1", "2"}, Integers{4}}), ElementsAre(1, 2, 4, 0));
  EXPECT_EQ(ErrorOf({"1|2|3", "3"}), "a: expected 2 numbers, found 3");
  EXPECT_EQ(ErrorOf({"1", "3"}), "a: expected 2 numbers, found 1");
}

TEST_F(RecordMakerTest, HashesOfTextsAndWholeNumbers) {
  Make(Id(), "");
  EXPECT_THAT(FillIds({"red"}), ElementsAre(HashOf("red")));
  EXPECT_THAT(FillIds({"42"}), ElementsAre(HashOf("42")));
  EXPECT_THAT(FillIds({Integers{42}}), ElementsAre(HashOf("42")));
  EXPECT_THAT(FillIds({Integers{std::numeric_limits<int64_t>::min()}}),
              ElementsAre(HashOf("-9223372036854775808")));
  EXPECT_THAT(FillIds({Texts{"red"}}), ElementsAre(HashOf("red")));
  for (const Value& missing : {Value(), Value(""), Value(Texts{}), Value(Numbers{kNan})}) {
    EXPECT_THAT(FillIds({missing}), ElementsAre(HashOf("")));
  }
  EXPECT_EQ(ErrorOf({Numbers{0.5f}}), "x: expected a text or a whole number, found the number 0.5");
  EXPECT_EQ(ErrorOf({Texts{"a", "b"}}), "x: expected one value, found 2");
  Make(Id(100), "features { name: 'x' columns { column: 'y' hash { salt: 'z' } } }");
  EXPECT_THAT(FillIds({"red"}), ElementsAre(IdOfHash(HashOf("red", "z"), 100)));
}

TEST_F(RecordMakerTest, Vocabulary) {
  Make(Id(), "features { name: 'x' columns { vocabulary { values: ['a', 'b', '7'] } } }");
  EXPECT_THAT(FillIds({"b"}), ElementsAre(1));
  EXPECT_THAT(FillIds({Integers{7}}), ElementsAre(2));
  EXPECT_THAT(FillIds({"c"}), ElementsAre(3));
  EXPECT_THAT(FillIds({""}), ElementsAre(3));
  EXPECT_EQ(ErrorOf({Numbers{7}}), "x: expected a text or a whole number, found the number 7");
  Make(Id(), "features { name: 'x' columns { vocabulary { values: 'a' others: 1000 } } }");
  EXPECT_THAT(FillIds({"c"}), ElementsAre(1 + IdOfHash(HashOf("c"), 1000)));
  EXPECT_THAT(FillIds({Value()}), ElementsAre(1));
}

TEST_F(RecordMakerTest, AVocabularyInAFile) {
  ASSERT_TRUE(files_.CreateDirectories("/data").ok());
  files_.SetContent("/data/cities", "Rome\r\n\nOslo\n");
  Make(Id(3), "features { name: 'x' columns { vocabulary { file: 'cities' } } }");
  EXPECT_THAT(FillIds({"Oslo"}), ElementsAre(1));
  EXPECT_THAT(FillIds({"Bonn"}), ElementsAre(2));
  const auto error = [&](const std::string& path, int64_t rows) {
    return std::string(
        TryMake(Id(rows), absl::StrCat("features { name: 'x' columns { vocabulary { file: '", path,
                                       "' } } }"))
            .status()
            .message());
  };
  EXPECT_EQ(error("/data/cities", 2),
            "data.features[0].columns[0]: expected an embedding of 3 rows or more for \"x\", for 2 "
            "values and 1 for others, found 2");
  files_.SetContent("/data/twice", "a\nb\na\n");
  EXPECT_EQ(error("twice", 9),
            "/data/twice:3: expected a value that is not on line 1 already, found \"a\"");
  files_.SetContent("/data/empty", "\n");
  EXPECT_EQ(error("empty", 9), "/data/empty: expected a value on each line, found none");
  EXPECT_EQ(TryMake(Id(), "features { name: 'x' columns { vocabulary { file: 'none' } } }")
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RecordMakerTest, WholeNumbersAsIds) {
  Make(Id(), "features { name: 'x' columns { integer {} } }");
  EXPECT_THAT(FillIds({"18446744073709551615"}), ElementsAre(~uint64_t{0}));
  EXPECT_THAT(FillIds({"-1"}), ElementsAre(~uint64_t{0}));
  EXPECT_THAT(FillIds({Integers{-1}}), ElementsAre(~uint64_t{0}));
  EXPECT_THAT(FillIds({"-9223372036854775808"}), ElementsAre(uint64_t{1} << 63));
  for (const char* text : {"-9223372036854775809", "18446744073709551616", "1.0", "-", "x", "1 "}) {
    EXPECT_EQ(ErrorOf({text}),
              absl::StrCat("x: expected a whole number of 64 bits, found \"", text, "\""));
  }
  EXPECT_EQ(ErrorOf({Numbers{1}}), "x: expected a whole number of 64 bits, found the number 1");
  EXPECT_EQ(ErrorOf({""}), "x: expected a whole number, found nothing");
  Make(Id(10), "features { name: 'x' columns { integer { missing: 9 } } }");
  EXPECT_THAT(FillIds({"8"}), ElementsAre(8));
  EXPECT_THAT(FillIds({""}), ElementsAre(9));
  EXPECT_EQ(ErrorOf({"10"}), "x: expected a whole number from 0 to 9, found \"10\"");
  EXPECT_EQ(ErrorOf({Integers{-1}}), "x: expected a whole number from 0 to 9, found -1");
}

TEST_F(RecordMakerTest, Buckets) {
  Make(Id(5), "features { name: 'x' columns { buckets { boundaries: [0, 10, 20] } } }");
  EXPECT_THAT(FillIds({"-1"}), ElementsAre(0));
  EXPECT_THAT(FillIds({"0"}), ElementsAre(1));
  EXPECT_THAT(FillIds({Numbers{9.5f}}), ElementsAre(1));
  EXPECT_THAT(FillIds({Integers{20}}), ElementsAre(3));
  EXPECT_THAT(FillIds({""}), ElementsAre(4));
  EXPECT_EQ(ErrorOf({"x"}), "x: expected a number, found \"x\"");
}

TEST_F(RecordMakerTest, CrossesDependOnOrderAndSalt) {
  const auto crossed = [&](const std::string& cross, const std::vector<Value>& values) {
    Make(Id(), absl::StrCat("features { name: 'x' columns { cross { ", cross, " } } }"));
    return FillIds(values).front();
  };
  const std::string ab = "columns: ['a', 'b']";
  const uint64_t id = crossed(ab, {"p", "q"});
  EXPECT_EQ(id, HashValue("q", HashValue("p", FieldSalt("a*b"))));
  EXPECT_EQ(crossed(ab + " salt: 'a*b'", {"p", "q"}), id);
  EXPECT_EQ(crossed(ab, {Texts{"p"}, Texts{"q"}}), id);
  EXPECT_NE(crossed(ab, {"q", "p"}), id);
  EXPECT_NE(crossed(ab, {"pq", ""}), id);
  EXPECT_NE(crossed(ab, {"", ""}), crossed(ab, {"", "q"}));
  EXPECT_EQ(crossed(ab, {"1", ""}), crossed(ab, {Integers{1}, Value()}));
  Make(Id(7), absl::StrCat("features { name: 'x' columns { cross { ", ab, " } } }"));
  EXPECT_THAT(FillIds({"p", "q"}), ElementsAre(IdOfHash(id, 7)));
  EXPECT_EQ(ErrorOf({"p", Numbers{1}}), "b: expected a text or a whole number, found the number 1");
  EXPECT_EQ(ErrorOf({Integers{1, 2}, "q"}), "a: expected one value, found 2");
}

TEST_F(RecordMakerTest, BagsHaveTheValuesOfAllColumns) {
  Make(Bag(),
       "features { name: 'x' columns { separator: '|' } columns { column: 'b' integer {} } columns "
       "{ cross { columns: ['b', 'c'] } } }");
  EXPECT_THAT(maker_->columns(), ElementsAre("x", "b", "c"));
  const uint64_t crossed = HashValue("v", HashValue("5", FieldSalt("b*c")));
  EXPECT_THAT(FillIds({"p | q||p", "5", "v"}),
              ElementsAre(HashOf("p"), HashOf("q"), HashOf("p"), 5, crossed));
  EXPECT_THAT(Fill({"", Integers{5}, "v"}).features[0].offsets, ElementsAre(0, 2));
  EXPECT_EQ(ErrorOf({"p", "z", "v"}), "b: expected a whole number of 64 bits, found \"z\"");
}

TEST_F(RecordMakerTest, WhatIsMissingIsNotInABag) {
  for (const char* kind :
       {"hash {}", "vocabulary { values: 'a' }", "integer {}", "buckets { boundaries: 0 }"}) {
    Make(Bag(), absl::StrCat("features { name: 'x' columns { ", kind, " } }"));
    for (const Value& missing : {Value(), Value(""), Value(Texts{}), Value(Numbers{kNan})}) {
      EXPECT_THAT(FillIds({missing}), IsEmpty()) << kind;
    }
  }
  Make(Bag(), "features { name: 'x' columns { integer { missing: 3 } } }");
  EXPECT_THAT(FillIds({Value()}), ElementsAre(3));
  EXPECT_THAT(FillIds({""}), ElementsAre(3));
}

TEST_F(RecordMakerTest, WeightsOfABag) {
  Make(Bag(true), "features { name: 'x' columns { separator: '|' weight_separator: ':' } }");
  const Batch batch = Fill({"p:0.5|q| a:b : 2|:3|r:-1"});
  EXPECT_THAT(batch.features[0].ids,
              ElementsAre(HashOf("p"), HashOf("q"), HashOf("a:b"), HashOf("r")));
  EXPECT_THAT(batch.features[0].weights, ElementsAre(0.5f, 1, 2, -1));
  EXPECT_EQ(ErrorOf({"p:1|q:z"}), "x: expected a number as the weight, found \"z\"");
  EXPECT_EQ(ErrorOf({"p:"}), "x: expected a number as the weight, found nothing");
  Make(Bag(true), "features { name: 'x' columns { cross { columns: ['a', 'b'] } } }");
  EXPECT_THAT(Fill({"1", "2"}).features[0].weights, ElementsAre(1));
}

TEST_F(RecordMakerTest, TheLastOrFirstValuesOfABag) {
  const std::string column =
      "columns { column: 'a' integer {} separator: ',' weight_separator: ':' "
      "max_values: 2";
  Make(Bag(true),
       absl::StrCat("features { name: 'x' columns { column: 'b' integer {} } ", column, " } }"));
  Batch batch = Fill({"9", "1:1,2:2,3:3"});
  EXPECT_THAT(batch.features[0].ids, ElementsAre(9, 2, 3));
  EXPECT_THAT(batch.features[0].weights, ElementsAre(1, 2, 3));
  EXPECT_THAT(Fill({"9", "1:1"}).features[0].ids, ElementsAre(9, 1));
  Make(Bag(true), absl::StrCat("features { name: 'x' columns { column: 'b' integer {} } ", column,
                               " keep_first: true } }"));
  batch = Fill({"9", "1:1,2:2,3:3"});
  EXPECT_THAT(batch.features[0].ids, ElementsAre(9, 1, 2));
  EXPECT_THAT(batch.features[0].weights, ElementsAre(1, 1, 2));
}

TEST_F(RecordMakerTest, ARecordThatIsNoneLeavesNoIds) {
  const RecordSchema schema = {{{"p", {}, FeatureKind::kBag, true}, {"q", {}, FeatureKind::kBag}},
                               {}};
  Make(schema, "features { name: 'q' columns { integer {} } }");
  Batch batch;
  Resize(3, schema, &batch);
  ColumnError error;
  const auto fill = [&](const std::vector<Value>& values, int64_t row) {
    return maker_->Fill(ValuesOf(values), row, &batch, &error);
  };
  ASSERT_TRUE(fill({Texts{"a", "b"}, "1"}, 0));
  ASSERT_FALSE(fill({Texts{"c"}, "z"}, 1));
  ASSERT_TRUE(fill({Texts{"d"}, "2"}, 1));
  EXPECT_THAT(batch.features[0].ids,
              ElementsAre(HashOf("a", "p"), HashOf("b", "p"), HashOf("d", "p")));
  EXPECT_THAT(batch.features[0].weights, ElementsAre(1, 1, 1));
  EXPECT_THAT(batch.features[1].ids, ElementsAre(1, 2));
  EXPECT_THAT(batch.features[0].offsets, ElementsAre(0, 2, 3, 0));
}

TEST_F(RecordMakerTest, Labels) {
  const RecordSchema schema = {{{"x", Shape({1})}},
                               {{"a", 2}, {"b", 3}, {"c", 0}, {"d", 0, true}, {"e", 2}}};
  Make(schema,
       "labels { name: 'a' values: ['<=50K', '>50K'] } labels { name: 'd' missing: 0.5 } labels { "
       "name: 'e' at_least: 4 }");
  const Batch batch = Fill({"0", ">50K", Integers{2}, "-1.5", "", "4"});
  std::vector<float> labels;
  for (const Tensor& label : batch.labels) labels.push_back(label.data()[0]);
  EXPECT_THAT(labels, ElementsAre(1, 2, -1.5f, 0.5f, 1));
  EXPECT_EQ(ErrorOf({"0", "50K", "2", "1", "1", "1"}),
            "a: expected a label of \"<=50K\", \">50K\", found \"50K\"");
  EXPECT_EQ(ErrorOf({"0", "", "2", "1", "1", "1"}), "a: expected a label, found nothing");
  EXPECT_EQ(ErrorOf({"0", Texts{">50K", ">50K"}, "2", "1", "1", "1"}),
            "a: expected one label, found 2");
  EXPECT_EQ(ErrorOf({"0", ">50K", "3", "1", "1", "1"}),
            "b: expected a class from 0 to 2 as the label, found \"3\"");
  EXPECT_EQ(ErrorOf({"0", ">50K", "2", "z", "1", "1"}),
            "c: expected a number as the label, found \"z\"");
  EXPECT_EQ(ErrorOf({"0", ">50K", "2", "1", "-1", "1"}),
            "d: expected a weight >= 0 as the label, found \"-1\"");
  const RecordSchema binary = {{{"x", Shape({1})}}, {{"a", 2}}};
  Make(binary, "");
  EXPECT_EQ(ErrorOf({"0", "0.5"}), "a: expected 0 or 1 as the label, found \"0.5\"");
}

TEST_F(RecordMakerTest, TheFingerprintIsOfAllThatDecides) {
  const auto fingerprint = [&](const RecordSchema& schema, const std::string& config) {
    Make(schema, config);
    return maker_->fingerprint();
  };
  const uint64_t plain = fingerprint(Id(), "");
  EXPECT_EQ(fingerprint(Id(), "features { name: 'x' columns { hash {} } }"), plain);
  EXPECT_NE(fingerprint(Id(8), ""), plain);
  EXPECT_NE(fingerprint(Id(), "features { name: 'x' columns { integer {} } }"), plain);
  EXPECT_NE(fingerprint({Id().features, {{"y", 2}}}, ""),
            fingerprint({Id().features, {{"y", 3}}}, ""));
}

}  // namespace
}  // namespace keelson
