#include "core/model/spec/tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"

namespace keelson {

absl::StatusOr<std::vector<TableSpec>> ReadTables(const v1::ModelConfig& config) {
  std::vector<TableSpec> tables;
  for (int i = 0; i < config.tables_size(); ++i) {
    const std::string path = absl::StrCat("model.tables[", i, "]");
    TableSpec table = {config.tables(i).name(), config.tables(i).dim(), kEmbeddingInitializer};
    RETURN_IF_ERROR(CheckName(path + ".name", table.name));
    if (std::any_of(tables.begin(), tables.end(),
                    [&](const TableSpec& other) { return other.name == table.name; })) {
      return FieldError(path + ".name",
                        absl::StrCat("another table is already called \"", table.name, "\""));
    }
    if (table.dim < 1 || table.dim > TableSpec::kMostDim) {
      return FieldError(path + ".dim",
                        absl::StrCat("expected 1 to ", TableSpec::kMostDim, ", found ", table.dim));
    }
    table.max_rows = config.tables(i).max_rows();
    if (table.max_rows < 0) {
      return FieldError(path + ".max_rows",
                        absl::StrCat("expected at least 0, found ", table.max_rows));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace keelson
