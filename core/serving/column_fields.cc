#include "core/serving/column_fields.h"

#include <algorithm>
#include <cstddef>

#include "core/base/status_macros.h"
#include "core/data/columns/data_source.h"
#include "core/data/columns/record_plan.h"
#include "core/model/spec/record_schema.h"

namespace keelson {
namespace {

using ColumnValues = v1::DataConfig::ColumnValues;

ColumnField::Kind KindOf(const ColumnValues& values) {
  if (values.has_number() || values.has_buckets()) return ColumnField::Kind::kNumber;
  return values.has_integer() ? ColumnField::Kind::kInteger : ColumnField::Kind::kText;
}

// Adds what one use of a column says of it.
void AddUse(const ColumnValues& values, bool several, ColumnField* field) {
  field->kind = std::min(field->kind, KindOf(values));
  if (several) {
    field->list = true;
    field->separator = values.separator();
    field->weight_separator = values.weight_separator();
  }
  if (field->values.empty()) {
    field->values.assign(values.vocabulary().values().begin(), values.vocabulary().values().end());
  }
}

ColumnField* FieldOf(const std::string& name, std::vector<ColumnField>* fields) {
  const auto found = std::find_if(fields->begin(), fields->end(),
                                  [&](const ColumnField& field) { return field.name == name; });
  if (found != fields->end()) return &*found;
  fields->emplace_back().name = name;
  return &fields->back();
}

}  // namespace

absl::StatusOr<std::vector<ColumnField>> ColumnFieldsOf(const v1::TrainConfig& config,
                                                        const ModelSpec& model) {
  std::vector<ColumnField> fields;
  v1::DataConfig data = config.data();
  data.clear_labels();
  if (!HasColumns(data)) return fields;
  RecordSchema schema = model.records;
  schema.labels.clear();
  ASSIGN_OR_RETURN(const RecordPlan plan, PlanRecords(data, schema));
  for (size_t i = 0; i < plan.features.size(); ++i) {
    for (const PlannedColumn& column : plan.features[i]) {
      const ColumnValues& values = column.values;
      for (const std::string& name : values.cross().columns()) FieldOf(name, &fields);
      if (values.has_cross()) continue;
      const bool lists = HasLists(data) || !values.separator().empty();
      const bool several =
          schema.features[i].kind == FeatureKind::kBag || values.number().size() > 1;
      AddUse(values, lists && several, FieldOf(values.column(), &fields));
    }
  }
  return fields;
}

}  // namespace keelson
