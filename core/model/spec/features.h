// The features of a model's configuration.
#ifndef KEELSON_CORE_MODEL_SPEC_FEATURES_H_
#define KEELSON_CORE_MODEL_SPEC_FEATURES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Those of `features`, or the one that `input_shape` describes. INVALID_ARGUMENT, the text
// beginning with the field's path: both are there, or neither; a name that is malformed or there
// twice; no kind; a shape of too few or too many extents, or with one that is not positive.
absl::StatusOr<std::vector<FeatureSpec>> ReadFeatures(const v1::ModelConfig& config);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_FEATURES_H_
