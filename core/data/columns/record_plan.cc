#include "core/data/columns/record_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/columns/column_checks.h"
#include "core/data/columns/data_source.h"
#include "core/data/columns/label_column.h"

namespace keelson {
namespace {

using v1::DataConfig;
using ColumnValues = DataConfig::ColumnValues;

template <typename Specs>
std::string NamesOf(const Specs& specs) {
  return absl::StrJoin(specs, ", ",
                       [](std::string* out, const auto& spec) { out->append(spec.name); });
}

// By the position of each spec that of its entry; nothing: it has none.
template <typename Entries, typename Specs>
absl::StatusOr<std::vector<std::optional<int>>> MatchNames(const Entries& entries,
                                                           const Specs& specs,
                                                           absl::string_view field) {
  std::vector<std::optional<int>> entry_of(specs.size());
  for (int i = 0; i < entries.size(); ++i) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& candidate) {
      return candidate.name == entries.Get(i).name();
    });
    const std::string path = absl::StrCat(field, "[", i, "].name");
    if (spec == specs.end()) {
      return Wrong(path, absl::StrCat("one of ", NamesOf(specs)), Quoted(entries.Get(i).name()));
    }
    std::optional<int>& entry = entry_of[spec - specs.begin()];
    if (entry.has_value()) {
      return Wrong(path, "a name of its own", Quoted(entries.Get(i).name()));
    }
    entry = i;
  }
  return entry_of;
}

void Complete(const FeatureSpec& feature, ColumnValues* values) {
  const bool numbers = feature.kind == FeatureKind::kNumbers;
  if (values->kind_case() == ColumnValues::KIND_NOT_SET) {
    if (numbers) {
      values->mutable_number();
    } else {
      values->mutable_hash();
    }
  }
  if (values->column().empty() && !values->has_cross()) values->set_column(feature.name);
  if (values->has_number()) {
    DataConfig::Number* const number = values->mutable_number();
    if (!number->has_stddev()) number->set_stddev(1);
    if (number->size() == 0) number->set_size(1);
  }
  if (values->has_hash() && values->hash().salt().empty()) {
    values->mutable_hash()->set_salt(values->column());
  }
  if (values->has_cross() && values->cross().salt().empty()) {
    values->mutable_cross()->set_salt(absl::StrJoin(values->cross().columns(), "*"));
  }
  if (values->has_vocabulary() && values->vocabulary().others() == 0) {
    values->mutable_vocabulary()->set_others(1);
  }
}

class Planner {
 public:
  Planner(const DataConfig& data, const RecordSchema& schema) : data_(data), schema_(schema) {}

  absl::StatusOr<RecordPlan> Plan() const {
    RecordPlan plan;
    ASSIGN_OR_RETURN(const std::vector<std::optional<int>> features,
                     MatchNames(data_.features(), schema_.features, "data.features"));
    for (size_t i = 0; i < features.size(); ++i) {
      ASSIGN_OR_RETURN(std::vector<PlannedColumn> columns,
                       PlanFeature(features[i], schema_.features[i]));
      plan.features.push_back(std::move(columns));
    }
    ASSIGN_OR_RETURN(const std::vector<std::optional<int>> labels,
                     MatchNames(data_.labels(), schema_.labels, "data.labels"));
    for (size_t i = 0; i < labels.size(); ++i) {
      ASSIGN_OR_RETURN(PlannedLabel label, PlanLabel(labels[i], schema_.labels[i]));
      plan.labels.push_back(std::move(label));
    }
    return plan;
  }

 private:
  absl::StatusOr<std::vector<PlannedColumn>> PlanFeature(std::optional<int> entry,
                                                         const FeatureSpec& feature) const {
    const std::string field = entry.has_value()
                                  ? absl::StrCat("data.features[", *entry, "]")
                                  : absl::StrCat("the feature ", Quoted(feature.name));
    std::vector<PlannedColumn> columns;
    if (!entry.has_value() || data_.features(*entry).columns().empty()) {
      columns.push_back({ColumnValues(), field});
      if (feature.kind == FeatureKind::kNumbers) {
        columns.front().values.mutable_number()->set_size(feature.shape.num_elements());
      }
    } else {
      for (int k = 0; k < data_.features(*entry).columns_size(); ++k) {
        columns.push_back(
            {data_.features(*entry).columns(k), absl::StrCat(field, ".columns[", k, "]")});
      }
    }
    for (PlannedColumn& column : columns) {
      Complete(feature, &column.values);
      RETURN_IF_ERROR(CheckColumn(column, feature));
      RETURN_IF_ERROR(CheckSeparates(column));
    }
    RETURN_IF_ERROR(CheckTogether(field, feature, columns));
    return columns;
  }

  // A column of csv has one value unless something separates several.
  absl::Status CheckSeparates(const PlannedColumn& column) const {
    const bool separates = HasLists(data_) || !column.values.separator().empty();
    if (separates || column.values.number().size() <= 1) return absl::OkStatus();
    return Wrong(column.field,
                 "a separator, or columns for each number, as a field of csv is one value",
                 absl::StrCat(column.values.number().size(), " numbers of one column"));
  }

  static absl::Status CheckTogether(const std::string& field, const FeatureSpec& feature,
                                    const std::vector<PlannedColumn>& columns) {
    if (feature.kind == FeatureKind::kId && columns.size() != 1) {
      return Wrong(field, absl::StrCat("one column for the id ", Quoted(feature.name)),
                   columns.size());
    }
    if (feature.kind != FeatureKind::kNumbers) return absl::OkStatus();
    int64_t numbers = 0;
    for (const PlannedColumn& column : columns) {
      numbers += column.values.has_missing() ? 1 : column.values.number().size();
    }
    if (numbers == feature.shape.num_elements()) return absl::OkStatus();
    return Wrong(field,
                 absl::StrCat(feature.shape.num_elements(), " numbers for ", Quoted(feature.name),
                              ", ", feature.FormText()),
                 numbers);
  }

  absl::StatusOr<PlannedLabel> PlanLabel(std::optional<int> entry, const LabelSpec& label) const {
    PlannedLabel planned;
    planned.field = entry.has_value() ? absl::StrCat("data.labels[", *entry, "]")
                                      : absl::StrCat("the label ", Quoted(label.name));
    if (entry.has_value()) planned.label = data_.labels(*entry);
    if (planned.label.column().empty()) planned.label.set_column(label.name);
    RETURN_IF_ERROR(CheckLabel(planned, label));
    return planned;
  }

  static absl::Status CheckLabel(const PlannedLabel& planned, const LabelSpec& label) {
    const DataConfig::LabelColumn& config = planned.label;
    if (config.has_at_least() && config.values_size() > 0) {
      return Wrong(planned.field, "at most one of values and at_least", "both");
    }
    const bool binary = label.num_classes == 0 || label.num_classes == 2;
    if (config.has_at_least() && !binary) {
      return Wrong(planned.field + ".at_least",
                   absl::StrCat("none of a label of ", label.num_classes, " classes"),
                   config.at_least());
    }
    RETURN_IF_ERROR(CheckFinite(planned.field + ".at_least", config.at_least()));
    if (config.values_size() > 0 && label.num_classes > 0 &&
        config.values_size() != label.num_classes) {
      return Wrong(planned.field + ".values", absl::StrCat(label.num_classes, " (the classes)"),
                   config.values_size());
    }
    std::set<absl::string_view> values;
    for (int i = 0; i < config.values_size(); ++i) {
      if (!config.values(i).empty() && values.insert(config.values(i)).second) continue;
      return Wrong(absl::StrCat(planned.field, ".values[", i, "]"), "a text of its own",
                   Quoted(config.values(i)));
    }
    if (!config.has_missing()) return absl::OkStatus();
    const std::optional<std::string> expected = NotALabel(label, config.missing());
    return expected.has_value() ? Wrong(planned.field + ".missing", *expected, config.missing())
                                : absl::OkStatus();
  }

  const DataConfig& data_;
  const RecordSchema& schema_;
};

}  // namespace

absl::StatusOr<RecordPlan> PlanRecords(const DataConfig& data, const RecordSchema& schema) {
  return Planner(data, schema).Plan();
}

}  // namespace keelson
