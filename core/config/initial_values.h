// What InitialValuesConfig means for a model's variables.
#ifndef KEELSON_CORE_CONFIG_INITIAL_VALUES_H_
#define KEELSON_CORE_CONFIG_INITIAL_VALUES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The variables with the initializers that their groups say. One without a group keeps its own, and
// so does one whose values come from files alone (StoredStartsOf). `tables` are the model's.
// INVALID_ARGUMENT, the text beginning with the field's path: a group that decides for no variable
// and no table, has no kind of values, no file or numbers that make no distribution, or that needs
// fans which a variable has not; one of glorot, he or from that decides for a table.
absl::StatusOr<std::vector<VariableSpec>> WithInitialValues(const v1::InitialValuesConfig& config,
                                                            std::vector<VariableSpec> variables,
                                                            std::vector<TableSpec> tables = {});
// The same of the tables.
absl::StatusOr<std::vector<TableSpec>> TablesWithInitialValues(
    const v1::InitialValuesConfig& config, std::vector<VariableSpec> variables,
    std::vector<TableSpec> tables);

// The path of groups whose values come with a script's proposal (ChiefService.ProposeJob).
inline constexpr absl::string_view kProposedValues = "proposed";

// Where a model directory has them.
std::string ProposedValuesPath(absl::string_view model_dir);
bool HasProposedValues(const v1::InitialValuesConfig& config);
// The same groups, with that path in place of kProposedValues.
v1::InitialValuesConfig WithProposedValues(v1::InitialValuesConfig config,
                                           absl::string_view model_dir);

// A tensor in a file that a variable's values may come from.
struct StoredOrigin {
  size_t group = 0;    // of the configuration
  std::string path;    // as the group has it
  std::string tensor;  // its name in the file
};

// The start of a variable that the configuration looks for in files.
struct StoredStart {
  size_t variable = 0;  // its position
  // At least one; the first whose file has the tensor counts.
  std::vector<StoredOrigin> origins;
  // No file has it: true: that is an error; false: it starts by its initializer.
  bool required = true;
};

// By variable, those that have none left out. `config` is one that WithInitialValues accepts.
std::vector<StoredStart> StoredStartsOf(const v1::InitialValuesConfig& config,
                                        const std::vector<VariableSpec>& variables);

// "initial_values.groups[2].from".
std::string FromPath(size_t group);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_INITIAL_VALUES_H_
