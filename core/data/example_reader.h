// Reads tf.Example messages (tensorflow/core/example/example.proto, feature.proto) from their
// bytes.
#ifndef KEELSON_CORE_DATA_EXAMPLE_READER_H_
#define KEELSON_CORE_DATA_EXAMPLE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/data/columns/column_value.h"

namespace keelson {

// Calls visit(name, feature) for each feature of an example, `feature` being a message for
// ExampleReader. A name that is there twice has the feature of the last time. False: the bytes are
// no tf.Example; `bad_byte` is then where that shows.
bool ForEachFeature(absl::string_view example,
                    absl::FunctionRef<bool(absl::string_view, absl::string_view)> visit,
                    size_t* bad_byte);

// Reads some features of one example after the other. Not thread-safe.
class ExampleReader {
 public:
  // The positions in the result of Read of the features that are read; both outlive the reader.
  using Columns = absl::flat_hash_map<std::string, size_t>;
  explicit ExampleReader(const Columns* columns) : columns_(*columns) {}

  // The values of the columns, missing where the example has no such feature or none of it, until
  // the next call; they show the example's bytes. False: it is no tf.Example; `bad_byte` is where
  // that shows.
  bool Read(absl::string_view example, size_t* bad_byte);
  const std::vector<ColumnValue>& values() const { return values_; }

 private:
  // Of a column: values [begin, end) of those of its kind.
  struct Range {
    ColumnValue::Kind kind = ColumnValue::Kind::kMissing;
    size_t begin = 0;
    size_t end = 0;
  };

  bool ReadFeature(absl::string_view feature, Range* range);
  bool ReadTexts(absl::string_view list, Range* range);
  bool ReadNumbers(absl::string_view list, Range* range);
  bool ReadIntegers(absl::string_view list, Range* range);
  void Begin(ColumnValue::Kind kind, size_t size, Range* range);

  const Columns& columns_;
  std::vector<Range> ranges_;
  std::vector<absl::string_view> texts_;
  std::vector<float> numbers_;
  std::vector<int64_t> integers_;
  std::vector<ColumnValue> values_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_EXAMPLE_READER_H_
