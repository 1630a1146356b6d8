#include "core/data/columns/record_maker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/data/columns/column_checks.h"

namespace keelson {
namespace {

// A value of a file's vocabulary is on each line; empty lines are none.
absl::Status ReadVocabulary(const std::string& path, v1::DataConfig::Vocabulary* vocabulary,
                            FileSystem* file_system) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  ASSIGN_OR_RETURN(const std::string content, ReadBoundedFile(path, kMostBytes, file_system));
  absl::flat_hash_map<absl::string_view, int64_t> lines;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(content, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty()) continue;
    const auto inserted = lines.emplace(line, number);
    if (!inserted.second) {
      return Wrong(absl::StrCat(path, ":", number),
                   absl::StrCat("a value that is not on line ", inserted.first->second, " already"),
                   Quoted(line));
    }
    vocabulary->add_values(line.data(), line.size());
  }
  return lines.empty() ? Wrong(path, "a value on each line", "none") : absl::OkStatus();
}

absl::Status ReadVocabularies(const v1::DataConfig& data, const RecordSchema& schema,
                              RecordPlan* plan, FileSystem* file_system) {
  for (size_t i = 0; i < plan->features.size(); ++i) {
    for (PlannedColumn& column : plan->features[i]) {
      const std::string& file = column.values.vocabulary().file();
      if (file.empty()) continue;
      const std::string path = absl::StartsWith(file, "/") ? file : JoinPath(data.data_dir(), file);
      RETURN_IF_ERROR(ReadVocabulary(path, column.values.mutable_vocabulary(), file_system));
      RETURN_IF_ERROR(CheckIdsFit(column, schema.features[i]));
    }
  }
  return absl::OkStatus();
}

uint64_t FingerprintOf(const RecordPlan& plan, const RecordSchema& schema) {
  constexpr int kRules = 1;  // counts up when the code calls other values a record
  std::string text = absl::StrCat(kRules, " ", schema.FeaturesText());
  for (const std::vector<PlannedColumn>& columns : plan.features) {
    for (const PlannedColumn& column : columns) {
      absl::StrAppend(&text, " ", column.values.SerializeAsString());
    }
  }
  for (size_t i = 0; i < plan.labels.size(); ++i) {
    absl::StrAppend(&text, " ", schema.labels[i].num_classes, schema.labels[i].weighs,
                    plan.labels[i].label.SerializeAsString());
  }
  return StableHash(text) | 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordMaker>> RecordMaker::Create(const v1::DataConfig& data,
                                                                       const RecordSchema& schema,
                                                                       FileSystem* file_system) {
  ASSIGN_OR_RETURN(RecordPlan plan, PlanRecords(data, schema));
  RETURN_IF_ERROR(ReadVocabularies(data, schema, &plan, file_system));
  std::unique_ptr<RecordMaker> maker(new RecordMaker(schema));
  maker->Add(plan);
  maker->fingerprint_ = FingerprintOf(plan, schema);
  return maker;
}

void RecordMaker::Add(const RecordPlan& plan) {
  const auto logarithms = std::make_shared<const LogTable>();
  for (size_t i = 0; i < plan.features.size(); ++i) {
    const FeatureSpec& spec = schema_.features[i];
    Feature feature = {i, spec.kind, spec.shape.num_elements()};
    for (const PlannedColumn& column : plan.features[i]) {
      std::vector<size_t> columns = ColumnsOf(column);
      if (spec.kind == FeatureKind::kNumbers) {
        feature.number_columns.emplace_back(column.values, columns.front(), logarithms);
      } else {
        feature.id_columns.emplace_back(column.values, spec, std::move(columns));
      }
    }
    (spec.kind == FeatureKind::kBag ? bags_ : features_).push_back(std::move(feature));
  }
  for (size_t i = 0; i < plan.labels.size(); ++i) {
    const PlannedLabel& planned = plan.labels[i];
    labels_.emplace_back(planned.label, schema_.labels[i],
                         ColumnOf(planned.label.column(), planned.field));
  }
}

size_t RecordMaker::ColumnOf(const std::string& name, const std::string& field) {
  std::vector<std::string>& columns = needed_.names;
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return found - columns.begin();
  columns.push_back(name);
  needed_.needed_by.push_back(field);
  return columns.size() - 1;
}

std::vector<size_t> RecordMaker::ColumnsOf(const PlannedColumn& column) {
  const v1::DataConfig::ColumnValues& values = column.values;
  if (!values.has_cross()) return {ColumnOf(values.column(), column.field)};
  std::vector<size_t> columns;
  for (const std::string& name : values.cross().columns()) {
    columns.push_back(ColumnOf(name, column.field));
  }
  return columns;
}

bool RecordMaker::Fill(absl::Span<const ColumnValue> values, int64_t row, Batch* batch,
                       ColumnError* error) const {
  for (const Feature& feature : features_) {
    FeatureValues* const filled = &batch->features[feature.position];
    const bool readable =
        feature.kind == FeatureKind::kNumbers
            ? FillNumbers(feature, values, row, filled, error)
            : feature.id_columns.front().ReadOne(values, &filled->ids[row], error);
    if (!readable) return false;
  }
  for (size_t i = 0; i < labels_.size(); ++i) {
    const ColumnValue& value = values[labels_[i].column()];
    if (!labels_[i].Read(value, batch->labels[i].data() + row, error)) return false;
  }
  return bags_.empty() || FillBags(values, row, batch, error);
}

bool RecordMaker::FillNumbers(const Feature& feature, absl::Span<const ColumnValue> values,
                              int64_t row, FeatureValues* filled, ColumnError* error) {
  float* at = filled->numbers.data() + row * feature.numbers;
  for (const NumberColumn& column : feature.number_columns) {
    if (!column.Write(values[column.column()], at, error)) return false;
    at += column.size();
  }
  return true;
}

bool RecordMaker::FillBags(absl::Span<const ColumnValue> values, int64_t row, Batch* batch,
                           ColumnError* error) const {
  absl::InlinedVector<size_t, 16> begins;
  for (const Feature& bag : bags_) {
    FeatureValues* const filled = &batch->features[bag.position];
    begins.push_back(filled->ids.size());
    for (const IdColumn& column : bag.id_columns) {
      if (column.AppendAll(values, filled, error)) continue;
      for (size_t i = 0; i < begins.size(); ++i) {
        FeatureValues& undone = batch->features[bags_[i].position];
        undone.ids.resize(begins[i]);
        undone.weights.resize(std::min(begins[i], undone.weights.size()));
      }
      return false;
    }
  }
  for (const Feature& bag : bags_) {
    FeatureValues& filled = batch->features[bag.position];
    filled.offsets[row + 1] = static_cast<int64_t>(filled.ids.size());
  }
  return true;
}

}  // namespace keelson
