#include "core/model/spec/model_variables.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/tables.h"

namespace keelson {
namespace {

// A slot's name has a slash, and a pattern an asterisk.
absl::Status CheckVariableName(const std::string& path, const std::string& name) {
  const bool allowed = !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '*' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (allowed) return absl::OkStatus();
  return FieldError(path, absl::StrCat("expected a name without \"/\", \"*\" and control "
                                       "characters, found \"",
                                       absl::CHexEscape(name), "\""));
}

absl::StatusOr<VariableSpec> ReadVariable(const std::string& path,
                                          const v1::ExternalVariable& config) {
  RETURN_IF_ERROR(CheckVariableName(path + ".name", config.name()));
  for (int i = 0; i < config.shape_size(); ++i) {
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".shape[", i, "]"), config.shape(i)));
  }
  VariableSpec variable;
  variable.name = config.name();
  variable.shape = Shape({config.shape().begin(), config.shape().end()});
  RETURN_IF_ERROR(CheckElements(path + ".shape", "a variable", variable.shape));
  if (!config.has_average_decay()) return variable;
  variable.average_decay = config.average_decay();
  if (config.average_decay() >= 0 && config.average_decay() < 1) return variable;
  return FieldError(path + ".average_decay",
                    absl::StrCat("expected in [0, 1), found ", config.average_decay()));
}

absl::Status CheckNothingBeside(const v1::ModelConfig& config) {
  const bool alone = config.layers().empty() && config.features().empty() &&
                     config.input_shape().empty() && !config.has_loss() && config.losses().empty();
  if (alone) return absl::OkStatus();
  return FieldError("model.external",
                    "expected neither layers, features nor losses beside it, found some");
}

absl::StatusOr<ModelVariables> ReadExternal(const v1::ModelConfig& config) {
  RETURN_IF_ERROR(CheckNothingBeside(config));
  ModelVariables model;
  std::set<std::string> names;
  for (int i = 0; i < config.external().variables_size(); ++i) {
    const std::string path = absl::StrCat("model.external.variables[", i, "]");
    ASSIGN_OR_RETURN(VariableSpec variable, ReadVariable(path, config.external().variables(i)));
    if (!names.insert(variable.name).second) {
      return FieldError(path + ".name",
                        absl::StrCat("another variable is already called \"", variable.name, "\""));
    }
    model.variables.push_back(std::move(variable));
  }
  ASSIGN_OR_RETURN(model.tables, ReadTables(config));
  for (size_t t = 0; t < model.tables.size(); ++t) {
    if (!names.contains(model.tables[t].name)) continue;
    return FieldError(absl::StrCat("model.tables[", t, "].name"),
                      absl::StrCat("a variable is already called \"", model.tables[t].name, "\""));
  }
  if (!model.tables.empty() ||
      std::any_of(model.variables.begin(), model.variables.end(),
                  [](const VariableSpec& variable) { return variable.trained(); })) {
    return model;
  }
  return FieldError("model.external.variables", "expected a variable to train, found none");
}

}  // namespace

absl::StatusOr<ModelVariables> InferVariables(const v1::ModelConfig& config) {
  if (config.has_external()) return ReadExternal(config);
  ASSIGN_OR_RETURN(ModelSpec spec, InferModelSpec(config));
  return ModelVariables{std::move(spec.variables), std::move(spec.tables)};
}

}  // namespace keelson
