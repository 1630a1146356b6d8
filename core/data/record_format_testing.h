// Parses lines as a RecordFormat's caller does, for tests.
#ifndef KEELSON_CORE_DATA_RECORD_FORMAT_TESTING_H_
#define KEELSON_CORE_DATA_RECORD_FORMAT_TESTING_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/data/record_format.h"
#include "gtest/gtest.h"

namespace keelson {

// The batch of lines that are all records.
inline Batch ParseLines(const RecordFormat& format, const std::vector<std::string>& lines) {
  Batch batch;
  Resize(static_cast<int64_t>(lines.size()), format.schema(), &batch);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string ended = lines[i] + "\n";
    RecordError error;
    EXPECT_TRUE(format.Parse(absl::string_view(ended).substr(0, lines[i].size()),
                             static_cast<int64_t>(i), &batch, &error))
        << lines[i] << ": " << error.column << ": " << error.expected << ", " << error.found;
  }
  return batch;
}

// "COLUMN: expected …, found …" of a line that is no record; "none" for one that is.
inline std::string LineErrorText(const RecordFormat& format, const std::string& line) {
  Batch batch;
  Resize(1, format.schema(), &batch);
  RecordError error;
  const std::string ended = line + "\n";
  if (format.Parse(absl::string_view(ended).substr(0, line.size()), 0, &batch, &error)) {
    return "none";
  }
  for (const FeatureValues& values : batch.features) {
    EXPECT_EQ(values.weights.size(), 0u);
    if (values.offsets.empty()) continue;
    EXPECT_EQ(values.ids.size(), 0u);
  }
  return absl::StrCat(error.column, ": expected ", error.expected, ", found ", error.found);
}

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_FORMAT_TESTING_H_
