// What InitialValuesConfig means for a model's variables.
#ifndef KEELSON_CORE_CONFIG_INITIAL_VALUES_H_
#define KEELSON_CORE_CONFIG_INITIAL_VALUES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The variables with the initializers that their groups say. One without a group keeps its own.
// INVALID_ARGUMENT, the text beginning with the field's path: a group that decides for no variable,
// has no kind of values or numbers that make no distribution, or that needs fans which a variable
// has not.
absl::StatusOr<std::vector<VariableSpec>> WithInitialValues(const v1::InitialValuesConfig& config,
                                                            std::vector<VariableSpec> variables);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_INITIAL_VALUES_H_
