// The named features and labels that a model takes of each record.
#ifndef KEELSON_CORE_MODEL_SPEC_RECORD_SCHEMA_H_
#define KEELSON_CORE_MODEL_SPEC_RECORD_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/tensor/shape.h"

namespace keelson {

// The name of the feature that ModelConfig.input_shape describes.
inline constexpr absl::string_view kFeatures = "features";
// The name of the label of a model with one loss that names none.
inline constexpr absl::string_view kLabel = "label";

struct FeatureSpec {
  std::string name;
  Shape shape;  // of one record
};

// A number of each record that a loss reads.
struct LabelSpec {
  std::string name;
  // Labels are whole numbers from 0 to below this; 0: any numbers.
  int64_t num_classes = 0;
};

struct RecordSchema {
  std::vector<FeatureSpec> features;  // at least one
  std::vector<LabelSpec> labels;

  // The feature of a model that takes one alone; null: it takes several.
  const FeatureSpec* only_feature() const {
    return features.size() == 1 ? &features.front() : nullptr;
  }
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_RECORD_SCHEMA_H_
