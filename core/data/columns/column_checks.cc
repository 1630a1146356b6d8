#include "core/data/columns/column_checks.h"

#include <cmath>
#include <set>

#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"

namespace keelson {
namespace {

using v1::DataConfig;
using ColumnValues = DataConfig::ColumnValues;

const char* KindName(const ColumnValues& values) {
  switch (values.kind_case()) {
    case ColumnValues::kNumber:
      return "number";
    case ColumnValues::kMissing:
      return "missing";
    case ColumnValues::kHash:
      return "hash";
    case ColumnValues::kVocabulary:
      return "vocabulary";
    case ColumnValues::kInteger:
      return "integer";
    case ColumnValues::kBuckets:
      return "buckets";
    case ColumnValues::kCross:
      return "cross";
    case ColumnValues::KIND_NOT_SET:
      break;
  }
  return "none";
}

absl::Status CheckNumber(const std::string& field, const DataConfig::Number& number) {
  RETURN_IF_ERROR(CheckFinite(field + ".mean", number.mean()));
  RETURN_IF_ERROR(CheckPositiveNumber(field + ".stddev", number.stddev()));
  RETURN_IF_ERROR(CheckFinite(field + ".min", number.min()));
  RETURN_IF_ERROR(CheckFinite(field + ".max", number.max()));
  RETURN_IF_ERROR(CheckFinite(field + ".missing", number.missing()));
  if (number.has_min() && number.has_max() && number.min() > number.max()) {
    return Wrong(field + ".max", absl::StrCat(">= ", number.min(), " (its min)"), number.max());
  }
  if (number.size() < 1 || number.size() > kMaxElements) {
    return Wrong(field + ".size", absl::StrCat("1 to ", kMaxElements), number.size());
  }
  return absl::OkStatus();
}

absl::Status CheckVocabulary(const std::string& field, const DataConfig::Vocabulary& vocabulary) {
  if (vocabulary.values().empty() == vocabulary.file().empty()) {
    return Wrong(field, "one of values and file", vocabulary.file().empty() ? "none" : "both");
  }
  if (vocabulary.others() < 0) return Wrong(field + ".others", ">= 0", vocabulary.others());
  std::set<absl::string_view> values;
  for (int i = 0; i < vocabulary.values_size(); ++i) {
    const std::string& value = vocabulary.values(i);
    if (!value.empty() && values.insert(value).second) continue;
    return Wrong(absl::StrCat(field, ".values[", i, "]"), "a text of its own", Quoted(value));
  }
  return absl::OkStatus();
}

absl::Status CheckBuckets(const std::string& field, const DataConfig::Buckets& buckets) {
  if (buckets.boundaries().empty()) return Wrong(field + ".boundaries", "one or more", "none");
  for (int i = 0; i < buckets.boundaries_size(); ++i) {
    const std::string path = absl::StrCat(field, ".boundaries[", i, "]");
    const float boundary = buckets.boundaries(i);
    RETURN_IF_ERROR(CheckFinite(path, boundary));
    if (i > 0 && boundary <= buckets.boundaries(i - 1)) {
      return Wrong(path, absl::StrCat("> ", buckets.boundaries(i - 1), ", as they ascend"),
                   boundary);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCross(const std::string& field, const ColumnValues& values) {
  const DataConfig::Cross& cross = values.cross();
  if (!values.column().empty()) {
    return Wrong(field + ".column", "none with cross, which names its columns",
                 Quoted(values.column()));
  }
  if (cross.columns_size() < 2) {
    return Wrong(field + ".cross.columns", "two or more", cross.columns_size());
  }
  for (int i = 0; i < cross.columns_size(); ++i) {
    if (!cross.columns(i).empty()) continue;
    return Wrong(absl::StrCat(field, ".cross.columns[", i, "]"), "a column's name", "\"\"");
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const std::string& field, const ColumnValues& values) {
  if (values.has_number()) return CheckNumber(field + ".number", values.number());
  if (values.has_vocabulary()) return CheckVocabulary(field + ".vocabulary", values.vocabulary());
  if (values.has_buckets()) return CheckBuckets(field + ".buckets", values.buckets());
  if (values.has_cross()) return CheckCross(field, values);
  return absl::OkStatus();
}

// The fields beside the kind.
absl::Status CheckFields(const std::string& field, const ColumnValues& values,
                         const FeatureSpec& feature) {
  const bool bag = feature.kind == FeatureKind::kBag;
  const bool lists = (bag && !values.has_cross()) || values.has_number();
  if (!values.separator().empty() && !lists) {
    return Wrong(field + ".separator", "none of what has one value", Quoted(values.separator()));
  }
  if (!values.weight_separator().empty() && (!feature.weighted || values.has_cross())) {
    return Wrong(field + ".weight_separator", "none but of values of a weighted bag",
                 Quoted(values.weight_separator()));
  }
  RETURN_IF_ERROR(values.max_values() >= 0
                      ? absl::OkStatus()
                      : Wrong(field + ".max_values", ">= 0", values.max_values()));
  if (values.max_values() > 0 && (!bag || values.has_cross())) {
    return Wrong(field + ".max_values", "none but of values of a bag", values.max_values());
  }
  if (values.keep_first() && values.max_values() == 0) {
    return Wrong(field + ".keep_first", "false without max_values", "true");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFinite(absl::string_view field, float value) {
  return std::isfinite(value) ? absl::OkStatus() : Wrong(field, "a finite number", value);
}

absl::Status CheckIdsFit(const PlannedColumn& column, const FeatureSpec& feature) {
  const ColumnValues& values = column.values;
  if (feature.num_ids == 0) return absl::OkStatus();
  const auto rows = static_cast<uint64_t>(feature.num_ids);
  if (values.integer().has_missing() && values.integer().missing() >= rows) {
    return Wrong(column.field + ".integer.missing",
                 absl::StrCat("less than ", rows, ", the rows of the embedding"),
                 values.integer().missing());
  }
  uint64_t ids = 0;
  std::string expected;
  if (values.has_vocabulary()) {
    const auto listed = static_cast<uint64_t>(values.vocabulary().values_size());
    const auto others = static_cast<uint64_t>(values.vocabulary().others());
    ids = listed + others;
    expected = absl::StrCat(listed, " values and ", others, " for others");
  } else if (values.has_buckets()) {
    const auto boundaries = static_cast<uint64_t>(values.buckets().boundaries_size());
    ids = boundaries + 2;
    expected = absl::StrCat(boundaries + 1, " buckets and one for what is missing");
  }
  if (ids <= rows) return absl::OkStatus();
  return Wrong(column.field,
               absl::StrCat("an embedding of ", ids, " rows or more for ", Quoted(feature.name),
                            ", for ", expected),
               rows);
}

absl::Status CheckColumn(const PlannedColumn& column, const FeatureSpec& feature) {
  const ColumnValues& values = column.values;
  const bool for_numbers = values.has_number() || values.has_missing();
  if (for_numbers != (feature.kind == FeatureKind::kNumbers)) {
    const char* const expected =
        for_numbers ? "hash, vocabulary, integer, buckets or cross for " : "number or missing for ";
    return Wrong(column.field,
                 absl::StrCat(expected, Quoted(feature.name), ", ", feature.FormText()),
                 KindName(values));
  }
  RETURN_IF_ERROR(CheckKind(column.field, values));
  RETURN_IF_ERROR(CheckFields(column.field, values, feature));
  return values.vocabulary().file().empty() ? CheckIdsFit(column, feature) : absl::OkStatus();
}

}  // namespace keelson
