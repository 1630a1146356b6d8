#include "core/model/spec/record_schema.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {

std::string FeatureSpec::FormText() const {
  switch (kind) {
    case FeatureKind::kNumbers:
      return shape.ToString();
    case FeatureKind::kId:
      return num_ids == 0 ? "any id" : absl::StrCat("id of ", num_ids);
    case FeatureKind::kBag:
      return absl::StrCat(weighted ? "weighted bag of " : "bag of ",
                          num_ids == 0 ? "any" : absl::StrCat(num_ids), " ids");
  }
  return "";
}

const FeatureSpec* RecordSchema::only_numbers() const {
  const bool only = features.size() == 1 && features.front().kind == FeatureKind::kNumbers;
  return only ? &features.front() : nullptr;
}

std::string RecordSchema::FeaturesText() const {
  return absl::StrJoin(features, ", ", [](std::string* out, const FeatureSpec& feature) {
    absl::StrAppend(out, feature.name, " (", feature.FormText(), ")");
  });
}

}  // namespace keelson
