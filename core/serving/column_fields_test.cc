#include "core/serving/column_fields.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file_system_testing.h"
#include "core/config/train_config.h"
#include "core/serving/instances.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kModel[] = R"(
    model {
      features { name: "user" id {} }
      features { name: "seen" bag {} }
      features { name: "numbers" dense { shape: 3 } }
      tables { name: "t" dim: 1 }
      layers { name: "e" inputs: "user" embedding { table: "t" } }
      layers { name: "b" inputs: "seen" embedding_bag { table: "t" } }
      layers { name: "all" inputs: "e" inputs: "b" inputs: "numbers" concat {} }
      layers { dense { units: 1 } }
      loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
    } )";

v1::TrainConfig Config(const std::string& data) {
  auto config = ParseTrainConfig(absl::StrCat(kModel, data), "job");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

absl::StatusOr<std::vector<ColumnField>> FieldsOf(const std::string& data) {
  const v1::TrainConfig config = Config(data);
  return ColumnFieldsOf(config, *InferModelSpec(config.model()));
}

// "NAME: KIND list by SEPARATOR with WEIGHT_SEPARATOR of VALUES"
std::vector<std::string> Texts(const std::string& data) {
  std::vector<std::string> texts;
  const auto fields = FieldsOf(data);
  EXPECT_TRUE(fields.ok()) << fields.status();
  if (!fields.ok()) return texts;
  for (const ColumnField& field : *fields) {
    const char* const kind = field.kind == ColumnField::Kind::kNumber    ? "number"
                             : field.kind == ColumnField::Kind::kInteger ? "integer"
                                                                         : "text";
    std::string& text = texts.emplace_back(absl::StrCat(field.name, ": ", kind));
    if (field.list) absl::StrAppend(&text, " list by ", field.separator);
    if (!field.weight_separator.empty()) absl::StrAppend(&text, " with ", field.weight_separator);
    if (!field.values.empty()) absl::StrAppend(&text, " of ", absl::StrJoin(field.values, ","));
  }
  return texts;
}

constexpr char kColumns[] = R"(
    features { name: "user" columns { column: "name" } }
    features { name: "seen"
               columns { column: "tags" separator: "|" }
               columns { column: "city" vocabulary { values: ["Rome", "Oslo"] } }
               columns { column: "age" buckets { boundaries: [18, 65] } }
               columns { column: "shop" integer {} }
               columns { cross { columns: ["city", "season"] } } }
    features { name: "numbers"
               columns { column: "age" number {} }
               columns { column: "income" number {} }
               columns { column: "income" missing {} } } )";

TEST(ColumnFieldsTest, ColumnsOfCsv) {
  EXPECT_THAT(Texts(absl::StrCat("data { csv {} ", kColumns, "}")),
              ElementsAre("name: text", "tags: text list by |", "city: text of Rome,Oslo",
                          "age: number", "shop: integer", "season: text", "income: number"));
}

TEST(ColumnFieldsTest, ColumnsOfFilesThatHaveLists) {
  EXPECT_THAT(Texts(absl::StrCat("data { tf_record {} ", kColumns, "}")),
              ElementsAre("name: text", "tags: text list by |", "city: text list by  of Rome,Oslo",
                          "age: number list by ", "shop: integer list by ", "season: text",
                          "income: number"));
}

TEST(ColumnFieldsTest, AColumnOfSeveralNumbers) {
  EXPECT_THAT(Texts("data { npz {} }"),
              ElementsAre("user: text", "seen: text list by ", "numbers: number list by "));
}

TEST(ColumnFieldsTest, TheOrderIsThatOfInstances) {
  const v1::TrainConfig config = Config(absl::StrCat("data { csv {} ", kColumns, "}"));
  const ModelSpec model = *InferModelSpec(config.model());
  MemoryFileSystem files;
  const auto reader = InstanceReader::Create(config, model, &files);
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> names;
  const std::vector<ColumnField> fields = *ColumnFieldsOf(config, model);
  for (const ColumnField& field : fields) names.push_back(field.name);
  EXPECT_EQ((*reader)->form(), absl::StrCat("the columns ", absl::StrJoin(names, ", ")));
}

TEST(ColumnFieldsTest, OtherRecordsHaveNone) {
  EXPECT_THAT(Texts("data { generated_clicks {} }"), IsEmpty());
}

TEST(ColumnFieldsTest, AConfigurationThatMakesNoSense) {
  EXPECT_EQ(FieldsOf(R"(data { csv {} features { name: "age" } })").status().message(),
            "data.features[0].name: expected one of user, seen, numbers, found \"age\"");
}

}  // namespace
}  // namespace keelson
