// Of which columns each feature and label of a model is made, and how, as the configuration and its
// defaults have it.
#ifndef KEELSON_CORE_DATA_COLUMNS_RECORD_PLAN_H_
#define KEELSON_CORE_DATA_COLUMNS_RECORD_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct PlannedColumn {
  // Complete: it has a column or a cross, a kind, and what else has a default.
  v1::DataConfig::ColumnValues values;
  // For messages: "data.features[2].columns[0]", or "the feature \"age\"" where it has no entry.
  std::string field;
};

struct PlannedLabel {
  v1::DataConfig::LabelColumn label;  // complete
  std::string field;
};

// In the schema's order: of each feature its columns, and of each label its one.
struct RecordPlan {
  std::vector<std::vector<PlannedColumn>> features;
  std::vector<PlannedLabel> labels;
};

// Completes and checks `features` and `labels` of a configuration with a source that has columns.
// INVALID_ARGUMENT, beginning with the field's path, "data.features[2].name: expected …, found …":
// what needs no file to be wrong, such as a feature that the model has not, a kind that does not go
// with the feature's, numbers that do not fill it, or an embedding with too few rows.
absl::StatusOr<RecordPlan> PlanRecords(const v1::DataConfig& data, const RecordSchema& schema);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_RECORD_PLAN_H_
