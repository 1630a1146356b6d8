#include "core/serving/instances.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/columns/column_value.h"
#include "core/data/columns/data_source.h"
#include "core/serving/example.h"
#include "core/serving/json_values.h"

namespace keelson {
namespace {

using Json = nlohmann::json;

constexpr char kInstances[] = "instances";
constexpr char kInputs[] = "inputs";

std::string InstanceText(size_t row) { return absl::StrCat(kInstances, "[", row, "]"); }

// The values of one column of an instance, where a ColumnValue finds them.
struct Held {
  std::vector<std::string> texts;
  std::vector<absl::string_view> views;
  std::vector<int64_t> integers;
  std::vector<float> numbers;
};

bool FitsInteger(const Json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
  }
  return value.is_number_integer();
}

bool FitsFloat(const Json& value) {
  return value.is_number() &&
         std::abs(value.get<double>()) <= double{std::numeric_limits<float>::max()};
}

// Sets what a column shows of a value, which may be null; false: a column can show no such value.
bool Hold(const Json& value, Held* held, ColumnValue* shown) {
  const Json items = value.is_array() ? value : Json::array({value});
  const auto all = [&](auto fits) { return std::all_of(items.begin(), items.end(), fits); };
  if (value.is_null() || items.empty()) return true;
  if (all([](const Json& item) { return item.is_string(); })) {
    for (const Json& item : items) held->texts.push_back(item.get<std::string>());
    if (!value.is_array()) {
      *shown = ColumnValue::Text(held->texts.front());
      return true;
    }
    held->views.assign(held->texts.begin(), held->texts.end());
    *shown = ColumnValue::Texts(held->views);
    return true;
  }
  if (all(FitsInteger)) {
    for (const Json& item : items) held->integers.push_back(item.get<int64_t>());
    *shown = ColumnValue::Integers(held->integers);
    return true;
  }
  if (!all(FitsFloat)) return false;
  for (const Json& item : items) held->numbers.push_back(item.get<float>());
  *shown = ColumnValue::Numbers(held->numbers);
  return true;
}

// Puts the only record of `from` into row `row`; rows are put in their order.
void Append(const RecordSchema& schema, const Batch& from, size_t row, Batch* to) {
  for (size_t i = 0; i < schema.features.size(); ++i) {
    const FeatureValues& one = from.features[i];
    FeatureValues& all = to->features[i];
    switch (schema.features[i].kind) {
      case FeatureKind::kNumbers:
        std::copy_n(one.numbers.data(), one.numbers.size(),
                    all.numbers.data() + row * one.numbers.size());
        break;
      case FeatureKind::kId:
        all.ids[row] = one.ids.front();
        break;
      case FeatureKind::kBag:
        all.ids.insert(all.ids.end(), one.ids.begin(), one.ids.end());
        all.weights.insert(all.weights.end(), one.weights.begin(), one.weights.end());
        all.offsets[row + 1] = static_cast<int64_t>(all.ids.size());
        break;
    }
  }
}

// The instances of an object with a list for each name.
absl::StatusOr<Json> Rows(const Json& inputs) {
  if (!inputs.is_object() || inputs.empty()) {
    return WrongValue(kInputs, "an object with a list for each name", FoundText(&inputs));
  }
  Json rows = Json::array();
  bool first = true;
  for (const auto& [name, list] : inputs.items()) {
    const std::string where = absl::StrCat(kInputs, ".", name);
    if (!list.is_array()) return WrongValue(where, "a list", FoundText(&list));
    if (first) rows = Json(list.size(), Json::object());
    first = false;
    if (list.size() != rows.size()) {
      return WrongValue(where, absl::StrCat(rows.size(), " values, as others have"),
                        absl::StrCat(list.size()));
    }
    for (size_t row = 0; row < rows.size(); ++row) rows[row][name] = list[row];
  }
  return rows;
}

}  // namespace

InstanceReader::InstanceReader(RecordSchema schema, std::unique_ptr<const RecordMaker> maker)
    : schema_(std::move(schema)), maker_(std::move(maker)) {
  if (maker_ == nullptr) {
    form_ = absl::StrCat("the features ", schema_.FeaturesText());
    return;
  }
  const std::vector<std::string>& names = maker_->columns();
  form_ = absl::StrCat("the columns ", absl::StrJoin(names, ", "));
  for (size_t k = 0; k < names.size(); ++k) columns_[names[k]] = k;
}

absl::StatusOr<std::unique_ptr<const InstanceReader>> InstanceReader::Create(
    const v1::TrainConfig& config, const ModelSpec& model, FileSystem* file_system) {
  RecordSchema schema = model.records;
  schema.labels.clear();
  v1::DataConfig data = config.data();
  data.clear_labels();
  std::unique_ptr<const RecordMaker> maker;
  if (HasColumns(data)) {
    ASSIGN_OR_RETURN(maker, RecordMaker::Create(data, schema, file_system));
  }
  return std::unique_ptr<const InstanceReader>(
      new InstanceReader(std::move(schema), std::move(maker)));
}

absl::StatusOr<Batch> InstanceReader::Read(const Json& body) const {
  Json rows;
  if (body.is_object() && body.contains(kInstances)) {
    rows = body[kInstances];
  } else if (body.is_object() && body.contains(kInputs)) {
    ASSIGN_OR_RETURN(rows, Rows(body[kInputs]));
  } else {
    return WrongValue("body", "an object with \"instances\" or \"inputs\"", FoundText(&body));
  }
  if (!rows.is_array() || rows.empty() || rows.size() > kMostInstances) {
    return WrongValue(kInstances, absl::StrCat("a list of 1 to ", kMostInstances, " instances"),
                      FoundText(&rows));
  }
  Batch batch;
  Resize(static_cast<int64_t>(rows.size()), schema_, &batch);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (maker_ != nullptr) {
      RETURN_IF_ERROR(ReadColumns(InstanceText(row), rows[row], row, &batch));
      continue;
    }
    const absl::StatusOr<Batch> one = ReadExample(schema_, {{"features", rows[row]}});
    if (!one.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(InstanceText(row), ": ", one.status().message()));
    }
    Append(schema_, *one, row, &batch);
  }
  return batch;
}

absl::StatusOr<Batch> InstanceReader::ReadOne(const std::string& where, const Json& columns) const {
  Batch batch;
  Resize(1, schema_, &batch);
  RETURN_IF_ERROR(ReadColumns(where, columns, 0, &batch));
  return batch;
}

absl::Status InstanceReader::ReadColumns(const std::string& where, const Json& instance, size_t row,
                                         Batch* batch) const {
  if (!instance.is_object()) {
    return WrongValue(where, absl::StrCat("an object with ", form_), FoundText(&instance));
  }
  std::vector<ColumnValue> values(columns_.size());
  std::vector<Held> held(columns_.size());
  for (const auto& [name, value] : instance.items()) {
    const auto column = columns_.find(name);
    if (column == columns_.end()) {
      return WrongValue(where, form_, absl::StrCat("\"", name.substr(0, kQuotedJsonBytes), "\""));
    }
    if (!Hold(value, &held[column->second], &values[column->second])) {
      return WrongValue(absl::StrCat(where, ".", name), "a text, a number, or a list of either",
                        FoundText(&value));
    }
  }
  ColumnError error;
  if (maker_->Fill(values, static_cast<int64_t>(row), batch, &error)) return absl::OkStatus();
  return WrongValue(absl::StrCat(where, ".", maker_->columns()[error.column]), error.expected,
                    error.found);
}

}  // namespace keelson
