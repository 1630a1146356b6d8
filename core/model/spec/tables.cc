#include "core/model/spec/tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"

namespace keelson {
namespace {

void SetLimits(const v1::TableConfig& config, TableSpec* table) {
  table->max_rows = config.max_rows();
  table->evict = config.at_limit() == v1::TableConfig::EVICT;
  table->expire_after_steps = config.expire_after_steps();
  table->admit_after = config.admit_after();
  table->absent_zeros = config.absent() == v1::TableConfig::ZEROS;
}

}  // namespace

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
    SetLimits(config.tables(i), &table);
    const absl::Status limits = CheckLimits(table);
    if (!limits.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ".", limits.message()));
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace keelson
