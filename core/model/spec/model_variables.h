// What a model has on the parameter servers, whether it is made of layers or a script's.
#ifndef KEELSON_CORE_MODEL_SPEC_MODEL_VARIABLES_H_
#define KEELSON_CORE_MODEL_SPEC_MODEL_VARIABLES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct ModelVariables {
  // A model of layers has ModelSpec::variables. An external one has those of its configuration, in
  // that order, which start with zeros.
  std::vector<VariableSpec> variables;
  // In the order of the configuration.
  std::vector<TableSpec> tables;
};

// INVALID_ARGUMENT, the text beginning with the field's path: as InferModelSpec; or an external
// model that has layers, features or losses too, nothing to train, a variable whose name is
// missing, malformed or there twice, also as a table's, an extent that is not positive, more than
// 2^31 - 1 elements, or an average_decay that is not in [0, 1).
absl::StatusOr<ModelVariables> InferVariables(const v1::ModelConfig& config);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_MODEL_VARIABLES_H_
