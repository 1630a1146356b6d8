#include "core/model/spec/record_schema.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {

std::string FeatureSpec::FormText() const {
  switch (kind) {
    case FeatureKind::kNumbers:
      return shape.ToString();
    case FeatureKind::kId:
      return absl::StrCat("id of ", num_ids);
    case FeatureKind::kBag:
      return absl::StrCat(weighted ? "weighted " : "", "bag of ", num_ids, " ids");
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
