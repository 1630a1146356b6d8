// Maps the tensors of a source to the variables of a snapshot.
#ifndef KEELSON_CLI_IMPORT_PLAN_H_
#define KEELSON_CLI_IMPORT_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/variable.h"
#include "core/tensor_files/tensor_source.h"

namespace keelson {

struct ImportedVariable {
  // The variable; with its initializer where `source` is empty.
  VariableSpec spec;
  // The tensor with its values; no name: none.
  TensorInfo source;
};

struct ImportPlan {
  std::vector<ImportedVariable> variables;
  std::vector<std::string> left_out;  // tensors of the source
};

// `renames`: "old=new". Imports the tensors that the source names as a model's variables, and
// renamed ones, without complex numbers. INVALID_ARGUMENT: a rename that is malformed, of a tensor
// that the source lacks, or to a name that another tensor has; nothing to take, unless that
// `may_be_nothing`.
absl::StatusOr<ImportPlan> PlanImport(TensorSource* source, const std::vector<std::string>& renames,
                                      bool may_be_nothing = false);

// Imports only the variables of a model. INVALID_ARGUMENT, too: variables that are missing (unless
// `initialize_missing`) or whose tensors have another shape; all are named.
absl::StatusOr<ImportPlan> PlanImportOf(const std::vector<VariableSpec>& model,
                                        bool initialize_missing, TensorSource* source,
                                        const std::vector<std::string>& renames);

}  // namespace keelson

#endif  // KEELSON_CLI_IMPORT_PLAN_H_
