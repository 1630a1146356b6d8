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

// What a feature has of each record.
enum class FeatureKind {
  kNumbers,  // numbers of one shape
  kId,       // one id
  kBag,      // any number of ids, of which one may be there more than once
};

struct FeatureSpec {
  std::string name;
  // Of one record's numbers; [] where the kind is not kNumbers.
  Shape shape = {};
  FeatureKind kind = FeatureKind::kNumbers;
  // Each id of a bag has a weight.
  bool weighted = false;
  // Ids are whole numbers from 0 to below this: the rows of the smallest embedding variable that
  // takes them. 0: tables alone take them, and they are any of 64 bits.
  int64_t num_ids = 0;

  // "[28, 28, 1]", "id of 1000", "bag of 1000 ids", "weighted bag of 1000 ids"; "any id", "bag of
  // any ids".
  std::string FormText() const;
};

// A number of each record that a loss reads.
struct LabelSpec {
  std::string name;
  // Labels are whole numbers from 0 to below this; 0: any numbers.
  int64_t num_classes = 0;
  // A loss takes them as the records' weights: they are >= 0.
  bool weighs = false;
};

struct RecordSchema {
  std::vector<FeatureSpec> features;  // at least one
  std::vector<LabelSpec> labels;

  // The feature of a model that takes one alone, which is numbers; null: it takes several, or ids.
  const FeatureSpec* only_numbers() const;
  // Its features for messages: "user (id of 1000), picture ([28, 28, 1])".
  std::string FeaturesText() const;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_RECORD_SCHEMA_H_
