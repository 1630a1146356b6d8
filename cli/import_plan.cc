#include "cli/import_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"
#include "core/tensor_files/tensor_names.h"

namespace keelson {
namespace {

// Names after renaming -> tensors with their names in the source.
using NamedTensors = std::map<std::string, TensorInfo>;

absl::Status BadRename(absl::string_view rename, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--map ", rename, ": ", what));
}

// Old name -> new name.
absl::StatusOr<std::map<std::string, std::string>> ParseRenames(
    const std::vector<std::string>& renames) {
  std::map<std::string, std::string> parsed;
  for (const std::string& rename : renames) {
    const size_t equals = rename.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == rename.size()) {
      return BadRename(rename, "expected old=new");
    }
    if (!parsed.emplace(rename.substr(0, equals), rename.substr(equals + 1)).second) {
      return BadRename(rename, "the tensor is renamed twice");
    }
  }
  return parsed;
}

// The names that the source has, for those who must say which one is meant.
std::string NamesText(const std::vector<TensorInfo>& tensors) {
  constexpr size_t kShownNames = 20;
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors) {
    if (IsNumeric(tensor.dtype))
      names.push_back(absl::StrCat(tensor.name, " ", tensor.shape.ToString()));
  }
  const size_t count = names.size();
  names.resize(std::min(count, kShownNames));
  return absl::StrCat(absl::StrJoin(names, ", "), count > kShownNames ? ", …" : "");
}

absl::StatusOr<NamedTensors> Rename(const std::vector<TensorInfo>& tensors,
                                    std::map<std::string, std::string> renames) {
  NamedTensors named;
  for (const TensorInfo& tensor : tensors) {
    const auto rename = renames.extract(tensor.name);
    const std::string& name = rename.empty() ? tensor.name : rename.mapped();
    if (!named.emplace(name, tensor).second) {
      return absl::InvalidArgumentError(absl::StrCat("--map: two tensors become '", name, "': '",
                                                     named[name].name, "' and '", tensor.name,
                                                     "'"));
    }
  }
  if (!renames.empty()) {
    const auto& [from, to] = *renames.begin();
    return BadRename(absl::StrCat(from, "=", to),
                     absl::StrCat("the source has no numbers named '", from, "'"));
  }
  return named;
}

void ListLeftOut(const std::vector<TensorInfo>& tensors, ImportPlan* plan) {
  std::set<std::string> used;
  for (const ImportedVariable& variable : plan->variables) used.insert(variable.source.name);
  for (const TensorInfo& tensor : tensors) {
    const bool left_out = used.count(tensor.name) == 0 && !IsRecord(tensor.name);
    if (left_out) plan->left_out.push_back(tensor.name);
  }
}

}  // namespace

absl::StatusOr<ImportPlan> PlanImport(TensorSource* source, const std::vector<std::string>& renames,
                                      bool may_be_nothing) {
  ASSIGN_OR_RETURN(const auto parsed, ParseRenames(renames));
  ASSIGN_OR_RETURN(const std::vector<TensorInfo> variables, source->Variables());
  std::set<std::string> wanted;
  for (const TensorInfo& tensor : variables) wanted.insert(tensor.name);
  for (const auto& [from, to] : parsed) wanted.insert(from);
  const std::vector<TensorInfo> all = source->List();
  std::vector<TensorInfo> taken;
  for (const TensorInfo& tensor : all) {
    if (wanted.count(tensor.name) > 0 && IsNumeric(tensor.dtype)) taken.push_back(tensor);
  }
  ASSIGN_OR_RETURN(const NamedTensors named, Rename(taken, parsed));
  if (named.empty() && !may_be_nothing) {
    return absl::InvalidArgumentError("the source has no variables to import");
  }
  ImportPlan plan;
  for (const auto& [name, tensor] : named) {
    plan.variables.push_back({{name, tensor.shape, Initializer()}, tensor});
  }
  ListLeftOut(all, &plan);
  return plan;
}

absl::StatusOr<ImportPlan> PlanImportOf(const std::vector<VariableSpec>& model,
                                        bool initialize_missing, TensorSource* source,
                                        const std::vector<std::string>& renames) {
  ASSIGN_OR_RETURN(const auto parsed, ParseRenames(renames));
  const std::vector<TensorInfo> all = source->List();
  ASSIGN_OR_RETURN(const NamedTensors named, Rename(all, parsed));
  ImportPlan plan;
  std::vector<std::string> problems;
  for (const VariableSpec& variable : model) {
    const auto found = named.find(variable.name);
    if (found == named.end()) {
      if (!initialize_missing) problems.push_back(absl::StrCat(variable.name, " is missing"));
      plan.variables.push_back({variable, TensorInfo()});
      continue;
    }
    const TensorInfo& tensor = found->second;
    if (tensor.shape != variable.shape || !IsNumeric(tensor.dtype)) {
      problems.push_back(absl::StrCat(variable.name, " expected float32 ",
                                      variable.shape.ToString(), ", found ", TypeAndShape(tensor)));
    }
    plan.variables.push_back({variable, tensor});
  }
  if (!problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the source does not fit the model: ", absl::StrJoin(problems, "; "),
                     "; --map old=new renames what it has: ", NamesText(all)));
  }
  ListLeftOut(all, &plan);
  return plan;
}

}  // namespace keelson
