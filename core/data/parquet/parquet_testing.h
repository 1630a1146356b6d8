// Writes a Parquet file, for tests of those that may not include Arrow.
#ifndef KEELSON_CORE_DATA_PARQUET_PARQUET_TESTING_H_
#define KEELSON_CORE_DATA_PARQUET_PARQUET_TESTING_H_

#include <string>

namespace keelson {

// Five rows in groups of two: "whole" (int64) 1, 1, null, 2, 1; "number" (double) .25, .75,
// …, 2.25; "text" Oslo, Rome, Oslo, Rome, Oslo; "list" (of int64) [7, 8], [8], [], [9], null; and
// "day" (date32), which no model can take.
void WriteTestParquet(const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_PARQUET_PARQUET_TESTING_H_
