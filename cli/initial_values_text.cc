#include "cli/initial_values_text.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/text_table.h"
#include "core/base/status_macros.h"
#include "core/config/initial_values.h"
#include "core/warm_start/warm_start.h"

namespace keelson {
namespace {

std::string InitializerText(const Initializer& initializer) {
  const float a = initializer.a, b = initializer.b;
  switch (initializer.kind) {
    case Initializer::Kind::kUniform:
      return absl::StrCat("uniform in [", a, ", ", b, ")");
    case Initializer::Kind::kNormal:
      return absl::StrCat("normal, mean ", a, ", deviation ", b);
    case Initializer::Kind::kTruncatedNormal:
      return absl::StrCat("truncated normal, mean ", a, ", deviation ", b);
    case Initializer::Kind::kConstant:
      break;
  }
  return absl::StrCat("constant ", a);
}

std::string Place(const std::string& path, const std::string& tensor) {
  return absl::StrCat(path, ": ", tensor);
}

// Where a job would look, and what it would do otherwise.
std::string PlanText(const StoredStart& start, const VariableSpec& variable) {
  std::string text;
  for (const StoredOrigin& origin : start.origins) {
    absl::StrAppend(&text, text.empty() ? "" : ", or ", Place(origin.path, origin.tensor));
  }
  if (start.required) return text;
  return absl::StrCat(text, ", or ", InitializerText(variable.initializer));
}

}  // namespace

absl::StatusOr<std::string> InitialValuesTable(const v1::TrainConfig& config,
                                               const ModelSpec& model) {
  const v1::InitialValuesConfig& groups = config.initial_values();
  ASSIGN_OR_RETURN(const std::vector<VariableSpec> specs,
                   WithInitialValues(groups, model.variables, model.tables));
  ASSIGN_OR_RETURN(const std::vector<TableSpec> tables,
                   TablesWithInitialValues(groups, model.variables, model.tables));
  std::map<size_t, std::string> plans;
  for (const StoredStart& start : StoredStartsOf(groups, specs)) {
    plans[start.variable] = PlanText(start, specs[start.variable]);
  }
  const absl::StatusOr<std::unique_ptr<WarmStart>> warm =
      WarmStart::Open(groups, specs, config.train().seed());
  TextTable table;
  table.AddRow({"variable", "shape", "initial values"});
  for (size_t v = 0; v < specs.size(); ++v) {
    const StoredOrigin* const origin = warm.ok() ? (*warm)->origin(v) : nullptr;
    std::string from = InitializerText(specs[v].initializer);
    if (origin != nullptr) {
      from = Place((*warm)->OpenedPath(origin->path), origin->tensor);
    } else if (!warm.ok() && plans.count(v) > 0) {
      from = plans.at(v);
    }
    table.AddRow({specs[v].name, specs[v].shape.ToString(), std::move(from)});
  }
  for (const TableSpec& rows : tables) {
    table.AddRow(
        {rows.name, absl::StrCat("[any, ", rows.dim, "]"), InitializerText(rows.initializer)});
  }
  std::string text = table.ToString();
  if (!warm.ok()) {
    absl::StrAppend(&text, "\n", warm.status().message(), "\n");
  } else if (!plans.empty()) {
    absl::StrAppend(&text, "\n", (*warm)->Report(), "\n");
  }
  return text;
}

}  // namespace keelson
