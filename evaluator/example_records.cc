#include "evaluator/example_records.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/data/columns/record_columns.h"
#include "core/model/spec/batch.h"

namespace keelson {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The double whose shortest text is the float's.
double ShortNumber(float number) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), number);
  double value = number;
  std::from_chars(std::begin(digits), end.ptr, value);
  return value;
}

OrderedJson Numbers(absl::Span<const float> numbers) {
  OrderedJson json = OrderedJson::array();
  for (const float number : numbers) json.push_back(ShortNumber(number));
  return json;
}

OrderedJson Ids(absl::Span<const uint64_t> ids) {
  OrderedJson json = OrderedJson::array();
  for (const uint64_t id : ids) json.push_back(absl::StrCat(id));
  return json;
}

// `values` are those of the only record.
OrderedJson FeatureJson(const FeatureSpec& feature, const FeatureValues& values) {
  switch (feature.kind) {
    case FeatureKind::kNumbers:
      return Numbers(values.numbers.span());
    case FeatureKind::kId:
      return absl::StrCat(values.ids.front());
    case FeatureKind::kBag:
      break;
  }
  if (!feature.weighted) return Ids(values.ids);
  return {{"ids", Ids(values.ids)}, {"weights", Numbers(values.weights)}};
}

absl::StatusOr<OrderedJson> RecordJson(const Dataset& records, const RecordSchema& schema,
                                       int64_t record) {
  OrderedJson json = {{"record", record}};
  ASSIGN_OR_RETURN(const RecordColumns columns, records.ReadColumns(record));
  if (!columns.empty()) {
    for (const RecordColumn& column : columns) json["columns"][column.name] = column.values;
    return json;
  }
  if (schema.only_numbers() != nullptr) return OrderedJson();
  Batch batch;
  RETURN_IF_ERROR(records.Read({record}, &batch));
  for (size_t i = 0; i < schema.features.size(); ++i) {
    json["features"][schema.features[i].name] = FeatureJson(schema.features[i], batch.features[i]);
  }
  for (size_t i = 0; i < schema.labels.size(); ++i) {
    json["labels"][schema.labels[i].name] = ShortNumber(batch.labels[i].data()[0]);
  }
  return json;
}

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

absl::StatusOr<std::string> FormatExamples(const Dataset& records, const RecordSchema& schema) {
  const int64_t count = std::min(kExampleRecords, records.num_records());
  OrderedJson list = OrderedJson::array();
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(OrderedJson json,
                     RecordJson(records, schema, i * records.num_records() / count));
    if (!json.is_null() && Dump(json).size() <= kMaxExampleBytes) list.push_back(std::move(json));
  }
  return absl::StrCat(Dump({{"records", std::move(list)}}), "\n");
}

absl::Status WriteExamples(absl::string_view model_dir, const Dataset& records,
                           const RecordSchema& schema, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::string text, FormatExamples(records, schema));
  return WriteFileAtomically(JoinPath(model_dir, "eval/examples.json"), text, file_system);
}

}  // namespace keelson
