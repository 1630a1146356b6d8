#include "core/data/parquet/parquet_testing.h"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <parquet/arrow/writer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

// What a builder has, once `append` has filled it.
template <typename Builder, typename Append>
std::shared_ptr<arrow::Array> Built(Builder* builder, Append append) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(append(builder, i).ok());
  return *builder->Finish();
}

std::shared_ptr<arrow::Array> Lists() {
  const auto values = std::make_shared<arrow::Int64Builder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values);
  const std::vector<std::vector<int64_t>> lists = {{7, 8}, {8}, {}, {9}, {}};
  return Built(&builder, [&](arrow::ListBuilder* list, int i) {
    if (i == 4) return list->AppendNull();
    const arrow::Status status = list->Append();
    return status.ok() ? values->AppendValues(lists[i]) : status;
  });
}

}  // namespace

void WriteTestParquet(const std::string& path) {
  arrow::Int64Builder whole;
  arrow::DoubleBuilder number;
  arrow::StringBuilder text;
  arrow::Date32Builder day;
  const auto table = arrow::Table::Make(
      arrow::schema({arrow::field("whole", arrow::int64()),
                     arrow::field("number", arrow::float64()), arrow::field("text", arrow::utf8()),
                     arrow::field("list", arrow::list(arrow::int64())),
                     arrow::field("day", arrow::date32())}),
      {Built(&whole,
             [](auto* builder, int i) {
               return i == 2 ? builder->AppendNull() : builder->Append(i == 3 ? 2 : 1);
             }),
       Built(&number, [](auto* builder, int i) { return builder->Append(0.25 + 0.5 * i); }),
       Built(&text,
             [](auto* builder, int i) { return builder->Append(i % 2 == 0 ? "Oslo" : "Rome"); }),
       Lists(), Built(&day, [](auto* builder, int i) { return builder->Append(i); })});
  const auto file = *arrow::io::FileOutputStream::Open(path);
  ASSERT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file,
                                         /*chunk_size=*/2)
                  .ok());
  ASSERT_TRUE(file->Close().ok());
}

}  // namespace keelson
