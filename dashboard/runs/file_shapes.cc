#include "dashboard/runs/file_shapes.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace keelson {
namespace {

using Test = bool (*)(const Json&);

// Null is a number that is not finite.
bool IsNumber(const Json& json) { return json.is_number() || json.is_null(); }

bool IsInteger(const Json& json) { return json.is_number_integer(); }

bool IsText(const Json& json) { return json.is_string(); }

bool IsListOf(const Json& json, Test test) {
  return json.is_array() && std::all_of(json.begin(), json.end(), test);
}

bool IsIntegers(const Json& json) { return IsListOf(json, IsInteger); }

bool IsNumbers(const Json& json) { return IsListOf(json, IsNumber); }

bool IsTexts(const Json& json) { return IsListOf(json, IsText); }

bool Has(const Json& object, const char* key, Test test) {
  if (!object.is_object()) return false;
  const auto field = object.find(key);
  return field != object.end() && test(*field);
}

bool HasAll(const Json& object, absl::Span<const char* const> keys, Test test) {
  return std::all_of(keys.begin(), keys.end(),
                     [&](const char* key) { return Has(object, key, test); });
}

bool IsShard(const Json& json) { return Has(json, "task", IsText) && Has(json, "bytes", IsNumber); }

bool IsPartition(const Json& json) {
  return HasAll(json, {"shard", "row_begin", "row_end", "bytes"}, IsInteger);
}

bool IsVariable(const Json& json) {
  return Has(json, "name", IsText) && Has(json, "shape", IsIntegers) &&
         Has(json, "bytes", IsNumber) &&
         Has(json, "partitions", [](const Json& list) { return IsListOf(list, IsPartition); });
}

bool IsKind(const Json& json) {
  return json == "classification" || json == "binary" || json == "regression" ||
         json == "retrieval";
}

bool IsSquare(const Json& json) {
  return IsListOf(json, IsNumbers) && std::all_of(json.begin(), json.end(), [&](const Json& row) {
           return row.size() == json.size();
         });
}

bool IsPair(const Json& json) { return IsNumbers(json) && json.size() == 2; }

bool IsPairs(const Json& json) { return IsListOf(json, IsPair); }

bool IsClassQuality(const Json& json) {
  return HasAll(json, {"precision", "recall", "f1", "support"}, IsNumber);
}

bool IsBin(const Json& json) {
  return HasAll(json, {"from", "to", "count", "confidence", "accuracy"}, IsNumber);
}

bool IsScoreBin(const Json& json) {
  return HasAll(json, {"from", "to"}, IsNumber) && Has(json, "counts", IsIntegers) &&
         json["counts"].size() == 2;
}

bool IsGroupAuc(const Json& json) {
  return Has(json, "feature", IsText) &&
         HasAll(json, {"auc", "mean_auc", "groups", "examples", "one_label_groups", "sampled"},
                IsNumber);
}

bool IsRetrieval(const Json& json) {
  return Has(json, "metrics", IsTexts) && HasAll(json, {"items", "queries"}, IsNumber);
}

bool IsSliceTotals(const Json& json) {
  return HasAll(json, {"examples", "share", "probability", "loss", "normalized_entropy"}, IsNumber);
}

bool IsValueSlice(const Json& json) { return Has(json, "id", IsText) && IsSliceTotals(json); }

bool IsFrequencySlice(const Json& json) {
  return HasAll(json, {"from", "to", "ids"}, IsNumber) && IsSliceTotals(json);
}

bool IsSlice(const Json& json) {
  const auto values = [](const Json& list) { return IsListOf(list, IsValueSlice); };
  const auto frequencies = [](const Json& list) { return IsListOf(list, IsFrequencySlice); };
  return Has(json, "feature", IsText) && Has(json, "ids", IsNumber) &&
         Has(json, "values", values) && Has(json, "frequencies", frequencies) &&
         (!json.contains("others") || Has(json, "others", IsSliceTotals));
}

bool IsInput(const Json& json) {
  return Has(json, "shape", IsIntegers) && Has(json, "values", IsNumbers);
}

bool IsFeature(const Json& json) {
  if (!Has(json, "name", IsText) || !Has(json, "count", IsNumber)) return false;
  const bool ids = json.contains("ids");
  if (json.contains("weights") &&
      !(ids && Has(json, "weights", IsNumbers) && json["weights"].size() == json["ids"].size())) {
    return false;
  }
  return ids ? Has(json, "ids", IsTexts) : Has(json, "numbers", IsNumbers);
}

bool IsExampleColumn(const Json& json) {
  return Has(json, "name", IsText) && Has(json, "count", IsNumber) && Has(json, "texts", IsTexts);
}

bool IsWrongExample(const Json& json) {
  if (!json.is_object()) return false;
  if (json.contains("input") && !Has(json, "input", IsInput)) return false;
  const auto is_features = [](const Json& list) { return IsListOf(list, IsFeature); };
  if (json.contains("features") && !Has(json, "features", is_features)) return false;
  const auto are_columns = [](const Json& list) { return IsListOf(list, IsExampleColumn); };
  if (json.contains("columns") && !Has(json, "columns", are_columns)) return false;
  for (const auto& [key, value] : json.items()) {
    const bool list = key == "input" || key == "features" || key == "columns";
    if (!list && !IsNumber(value)) return false;
  }
  return true;
}

struct Field {
  const char* name;
  const char* expected;
  bool required;
  Test test;
};

constexpr Field kPlacementFields[] = {
    {"balance", "a number", true, IsNumber},
    {"shards", "a list of {task, bytes}", true,
     [](const Json& json) { return IsListOf(json, IsShard); }},
    {"variables", "a list of {name, shape, bytes, partitions}", true,
     [](const Json& json) { return IsListOf(json, IsVariable); }},
};

constexpr Field kReportFields[] = {
    {"kind", "classification, binary, regression or retrieval", true, IsKind},
    {"wrong", "a list of examples", true,
     [](const Json& json) { return IsListOf(json, IsWrongExample); }},
    {"time", "a number", false, IsNumber},
    {"examples", "a number", false, IsNumber},
    {"classes", "a list of names", false, IsTexts},
    {"accuracy", "a number", false, IsNumber},
    {"confusion", "a square of numbers", false, IsSquare},
    {"per_class", "a list of {precision, recall, f1, support}", false,
     [](const Json& json) { return IsListOf(json, IsClassQuality); }},
    {"calibration", "a list of {from, to, count, confidence, accuracy}", false,
     [](const Json& json) { return IsListOf(json, IsBin); }},
    {"calibration_error", "a number", false, IsNumber},
    {"calibration_ratio", "a number", false, IsNumber},
    {"calibration_deciles", "a list of {from, to, count, confidence, accuracy}", false,
     [](const Json& json) { return IsListOf(json, IsBin); }},
    {"normalized_entropy", "a number", false, IsNumber},
    {"scores", "a list of {from, to, counts}", false,
     [](const Json& json) { return IsListOf(json, IsScoreBin); }},
    {"group_auc", "a list of {feature, auc, mean_auc, groups, examples, one_label_groups, sampled}",
     false, [](const Json& json) { return IsListOf(json, IsGroupAuc); }},
    {"retrieval", "a list of {metrics, items, queries}", false,
     [](const Json& json) { return IsListOf(json, IsRetrieval); }},
    {"slices", "a list of {feature, ids, values, frequencies}", false,
     [](const Json& json) { return IsListOf(json, IsSlice); }},
    {"roc", "a list of pairs of numbers", false, IsPairs},
    {"auc", "a number", false, IsNumber},
    {"precision_recall", "a list of pairs of numbers", false, IsPairs},
    {"auc_pr", "a number", false, IsNumber},
    {"mean_squared_error", "a number", false, IsNumber},
    {"mean_absolute_error", "a number", false, IsNumber},
    {"pairs", "a list of pairs of numbers", false, IsPairs},
};

absl::Status CheckFields(const Json& object, absl::Span<const Field> fields) {
  for (const Field& field : fields) {
    const bool there = object.is_object() && object.contains(field.name);
    if (there ? Has(object, field.name, field.test) : !field.required) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field.name, ": expected ", field.expected, there ? "" : ", found none"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlacementShape(const Json& placement) {
  return CheckFields(placement, kPlacementFields);
}

absl::Status CheckReportShape(const Json& report) { return CheckFields(report, kReportFields); }

}  // namespace keelson
