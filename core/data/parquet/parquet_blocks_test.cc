#include "core/data/parquet/parquet_blocks.h"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <parquet/arrow/writer.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> ArrayOf(std::shared_ptr<arrow::DataType> type,
                                      const std::vector<std::optional<Value>>& values) {
  Builder builder(std::move(type), arrow::default_memory_pool());
  for (const std::optional<Value>& value : values) {
    const arrow::Status status = value.has_value() ? builder.Append(*value) : builder.AppendNull();
    EXPECT_TRUE(status.ok());
  }
  return *builder.Finish();
}

// [[…], …], null where there is no list.
template <typename Value>
std::shared_ptr<arrow::Array> ListsOf(const std::vector<std::optional<std::vector<Value>>>& lists) {
  using Builder = typename arrow::CTypeTraits<Value>::BuilderType;
  const auto values = std::make_shared<Builder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values);
  for (const auto& list : lists) {
    EXPECT_TRUE((list.has_value() ? builder.Append() : builder.AppendNull()).ok());
    if (list.has_value()) {
      for (const Value& value : *list) EXPECT_TRUE(values->Append(value).ok());
    }
  }
  return *builder.Finish();
}

struct NamedArray {
  std::string name;
  std::shared_ptr<arrow::Array> array;
};

class ParquetBlocksTest : public testing::Test {
 protected:
  void Write(const std::vector<NamedArray>& columns, int64_t group_rows = 1000) {
    std::vector<std::shared_ptr<arrow::Field>> fields;
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (const NamedArray& column : columns) {
      fields.push_back(arrow::field(column.name, column.array->type()));
      arrays.push_back(column.array);
    }
    const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
    const auto file = *arrow::io::FileOutputStream::Open(path_);
    const auto properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file, group_rows,
                                           parquet::default_writer_properties(), properties)
                    .ok());
    ASSERT_TRUE(file->Close().ok());
  }

  absl::StatusOr<std::unique_ptr<BlockFile>> Open(const std::vector<std::string>& columns) {
    NeededColumns needed = {columns};
    for (const std::string& name : columns) {
      needed.needed_by.push_back(absl::StrCat("the feature \"", name, "\""));
    }
    return OpenParquetBlocks(path_, needed);
  }
  // Without the path in front.
  std::string ErrorOf(const std::vector<std::string>& columns) {
    const auto blocks = Open(columns);
    if (blocks.ok()) return "opened";
    const std::string text(blocks.status().message());
    EXPECT_EQ(text.find(path_), 0u) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text.substr(path_.size());
  }
  // Those that the file has, with what they are where they cannot be read.
  std::vector<std::string> ColumnTexts() {
    const auto columns = ListParquetColumns(path_);
    EXPECT_TRUE(columns.ok()) << columns.status();
    std::vector<std::string> texts;
    for (const FileColumn& column : *columns) {
      texts.push_back(absl::StrCat(column.name, ": ", column.unreadable));
    }
    return texts;
  }
  static std::vector<int64_t> Integers(const ColumnValue& value) {
    EXPECT_EQ(value.kind(), ColumnValue::Kind::kIntegers);
    return {value.integers().begin(), value.integers().end()};
  }

  const std::string path_ = JoinPath(FreshDirectory(), "a.parquet");
};

TEST_F(ParquetBlocksTest, TypesOfColumns) {
  Write(
      {{"int", ArrayOf<arrow::Int32Builder, int32_t>(arrow::int32(), {-5, std::nullopt, 7})},
       {"large", ArrayOf<arrow::UInt64Builder, uint64_t>(arrow::uint64(), {1, ~uint64_t{0}, 2})},
       {"bool",
        ArrayOf<arrow::BooleanBuilder, bool>(arrow::boolean(), {true, false, std::nullopt})},
       {"double", ArrayOf<arrow::DoubleBuilder, double>(arrow::float64(), {0.5, -2, std::nullopt})},
       {"text",
        ArrayOf<arrow::StringBuilder, std::string>(arrow::utf8(), {"x", std::nullopt, "zz"})},
       {"ids", ListsOf<int64_t>({{{1, 2}}, std::nullopt, {{}}})},
       {"words", ListsOf<std::string>({{{"a", "b"}}, {{"c"}}, std::nullopt})}});
  const auto blocks = Open({"words", "ids", "text", "double", "bool", "large", "int"});
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_THAT((*blocks)->block_records(), ElementsAre(3));
  const auto block = (*blocks)->Read(0);
  ASSERT_TRUE(block.ok()) << block.status();
  const std::vector<BlockColumn>& columns = (*block)->columns;
  EXPECT_EQ((*block)->records, 3);
  EXPECT_THAT(columns[0].Value(0).texts(), ElementsAre("a", "b"));
  EXPECT_EQ(columns[0].Value(1).text(), "c");
  EXPECT_EQ(columns[0].Value(2).kind(), ColumnValue::Kind::kMissing);
  EXPECT_THAT(Integers(columns[1].Value(0)), ElementsAre(1, 2));
  EXPECT_EQ(columns[1].Value(1).kind(), ColumnValue::Kind::kMissing);
  EXPECT_EQ(columns[1].Value(2).kind(), ColumnValue::Kind::kMissing);
  EXPECT_EQ(columns[2].Value(2).text(), "zz");
  EXPECT_EQ(columns[2].Value(1).kind(), ColumnValue::Kind::kMissing);
  EXPECT_THAT(columns[3].Value(1).numbers(), ElementsAre(-2));
  EXPECT_THAT(Integers(columns[4].Value(0)), ElementsAre(1));
  EXPECT_EQ(columns[4].Value(2).kind(), ColumnValue::Kind::kMissing);
  EXPECT_THAT(Integers(columns[5].Value(1)), ElementsAre(-1));
  EXPECT_THAT(Integers(columns[6].Value(0)), ElementsAre(-5));
  EXPECT_EQ(columns[6].Value(1).kind(), ColumnValue::Kind::kMissing);
}

TEST_F(ParquetBlocksTest, DictionariesAreTheirValues) {
  const auto indices =
      ArrayOf<arrow::Int32Builder, int32_t>(arrow::int32(), {1, std::nullopt, 0, 1});
  const auto values = ArrayOf<arrow::StringBuilder, std::string>(arrow::utf8(), {"Oslo", "Rome"});
  Write({{"city", *arrow::DictionaryArray::FromArrays(
                      arrow::dictionary(arrow::int32(), arrow::utf8()), indices, values)}});
  const auto blocks = Open({"city"});
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  const auto block = (*blocks)->Read(0);
  ASSERT_TRUE(block.ok()) << block.status();
  const BlockColumn& column = (*block)->columns[0];
  EXPECT_EQ(column.Value(0).text(), "Rome");
  EXPECT_EQ(column.Value(1).kind(), ColumnValue::Kind::kMissing);
  EXPECT_EQ(column.Value(2).text(), "Oslo");
  EXPECT_EQ(column.Value(3).text(), "Rome");
}

TEST_F(ParquetBlocksTest, GroupsOfRowsAreBlocks) {
  Write({{"x", ArrayOf<arrow::Int64Builder, int64_t>(arrow::int64(), {0, 1, 2, 3, 4})}}, 2);
  const auto blocks = Open({"x"});
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_THAT((*blocks)->block_records(), ElementsAre(2, 2, 1));
  EXPECT_THAT(Integers((*(*blocks)->Read(2))->columns[0].Value(0)), ElementsAre(4));
  EXPECT_THAT(Integers((*(*blocks)->Read(1))->columns[0].Value(1)), ElementsAre(3));
  EXPECT_TRUE((*blocks)->CheckUnchanged().ok());
  ASSERT_TRUE(RemoveFile(path_).ok());
  EXPECT_EQ((*blocks)->CheckUnchanged().message(),
            path_ + ": expected the file as it was when it was opened, found none");
}

TEST_F(ParquetBlocksTest, ColumnsThatCannotBeTaken) {
  const auto numbers = ArrayOf<arrow::Int64Builder, int64_t>(arrow::int64(), {1});
  const auto nested = *arrow::StructArray::Make({numbers}, std::vector<std::string>{"a"});
  Write({{"day", ArrayOf<arrow::Date32Builder, int32_t>(arrow::date32(), {17})},
         {"price", *arrow::MakeArrayOfNull(arrow::decimal128(5, 2), 1)},
         {"nested", nested},
         {"x", numbers}});
  EXPECT_EQ(ErrorOf({"x"}), "opened");
  EXPECT_THAT(ColumnTexts(), ElementsAre("day: date32[day]", "price: decimal128(5, 2)",
                                         "nested: struct<a: int64>", "x: "));
  EXPECT_EQ(ErrorOf({"y"}),
            ": expected a column \"y\" (the feature \"y\"), found day, price, nested, x");
  constexpr char kTypes[] = ": expected numbers, texts or lists of these in the column ";
  EXPECT_EQ(ErrorOf({"day"}),
            absl::StrCat(kTypes, "\"day\" (the feature \"day\"), found date32[day]"));
  EXPECT_EQ(ErrorOf({"price"}),
            absl::StrCat(kTypes, "\"price\" (the feature \"price\"), found decimal128(5, 2)"));
  EXPECT_EQ(ErrorOf({"nested"}),
            absl::StrCat(kTypes, "\"nested\" (the feature \"nested\"), found struct<a: int64>"));
  Write({{"x", numbers}, {"x", numbers}});
  EXPECT_EQ(ErrorOf({"x"}), ": expected one column \"x\" (the feature \"x\"), found 2");
  EXPECT_THAT(ColumnTexts(), ElementsAre("x: one of 2 of this name", "x: one of 2 of this name"));
}

TEST_F(ParquetBlocksTest, FilesThatAreNone) {
  constexpr char kNone[] = ": expected a Parquet file, found another or a damaged one: ";
  for (const char* content : {"", "PAR1", "a,b,c\n1,2,3\n and so on, for a while"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, content).ok());
    EXPECT_THAT(ErrorOf({"x"}), StartsWith(kNone));
  }
  ASSERT_TRUE(RemoveFile(path_).ok());
  EXPECT_EQ(Open({"x"}).status().code(), absl::StatusCode::kNotFound);
  Write({{"x", ArrayOf<arrow::Int64Builder, int64_t>(arrow::int64(), {0, 1, 2, 3, 4})}});
  const std::string content = *ReadFile(path_);
  ASSERT_TRUE(WriteFileAtomically(path_, content.substr(0, content.size() - 9)).ok());
  EXPECT_THAT(ErrorOf({"x"}), StartsWith(kNone));
  // What is in the middle is found when it is read.
  ASSERT_TRUE(
      WriteFileAtomically(path_, "PAR1" + std::string(30, '\xff') + content.substr(34)).ok());
  const auto blocks = Open({"x"});
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_THAT(std::string((*blocks)->Read(0).status().message()), StartsWith(path_ + kNone));
}

}  // namespace
}  // namespace keelson
