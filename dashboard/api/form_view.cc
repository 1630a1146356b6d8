#include "dashboard/api/form_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file.h"
#include "core/serving/column_fields.h"
#include "core/serving/example.h"
#include "dashboard/api/api_request.h"
#include "dashboard/api/query_model.h"
#include "dashboard/api/script_view.h"
#include "dashboard/runs/json.h"
#include "dashboard/runs/run_model.h"

namespace keelson {
namespace {

constexpr char kExamplesFile[] = "eval/examples.json";
constexpr uint64_t kMaxExamplesBytes = uint64_t{4} << 20;
// More values are too many to choose from.
constexpr size_t kMaxValues = 1000;

const char* KindText(ColumnField::Kind kind) {
  switch (kind) {
    case ColumnField::Kind::kNumber:
      return "number";
    case ColumnField::Kind::kInteger:
      return "integer";
    case ColumnField::Kind::kText:
      return "text";
  }
  return "";
}

Json FieldJson(const ColumnField& field) {
  Json json = {{"name", field.name}, {"kind", KindText(field.kind)}, {"list", field.list}};
  if (!field.separator.empty()) json["separator"] = field.separator;
  if (!field.weight_separator.empty()) json["weight_separator"] = field.weight_separator;
  if (!field.values.empty() && field.values.size() <= kMaxValues) json["values"] = field.values;
  return json;
}

bool AreTexts(const Json& json) {
  return json.is_array() &&
         std::all_of(json.begin(), json.end(), [](const Json& item) { return item.is_string(); });
}

// What a request has for a column of these values.
Json ColumnJson(const ColumnField& field, const Json& values) {
  if (field.list && field.separator.empty()) return values;
  return values.empty() ? Json() : values.front();
}

// Null: it is no example of records that are made of columns.
Json ColumnsExample(const std::vector<ColumnField>& fields, const Json& stored) {
  const Json* const columns = ObjectAt(stored, "columns");
  if (columns == nullptr || !std::all_of(columns->begin(), columns->end(), AreTexts)) return Json();
  Json example = {{"columns", Json::object()}, {"labels", Json::object()}};
  for (const auto& [name, values] : columns->items()) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&name = name](const auto& each) { return each.name == name; });
    if (field != fields.end()) {
      example["columns"][name] = ColumnJson(*field, values);
    } else if (!values.empty()) {
      example["labels"][name] = values.front();
    }
  }
  return example;
}

// Likewise of other records.
Json FeaturesExample(const RecordSchema& records, const Json& stored) {
  const Json* const features = ObjectAt(stored, "features");
  if (features == nullptr || !ReadExample(records, {{"features", *features}}).ok()) return Json();
  Json example = {{"features", *features}, {"labels", Json::object()}};
  const Json* const labels = ObjectAt(stored, "labels");
  if (labels == nullptr) return example;
  for (const auto& [name, value] : labels->items()) {
    if (value.is_number()) example["labels"][name] = value;
  }
  return example;
}

Json Examples(const Run& run, const RunModel& model, const std::vector<ColumnField>& fields) {
  Json examples = Json::array();
  const auto text = ReadBoundedFile(JoinPath(run.model_dir(), kExamplesFile), kMaxExamplesBytes,
                                    run.file_system());
  const std::optional<Json> file = text.ok() ? ParseJson(*text) : std::nullopt;
  const Json* const records = file.has_value() ? ListAt(*file, "records") : nullptr;
  if (records == nullptr) return examples;
  for (const Json& stored : *records) {
    const std::optional<int64_t> record = IntegerAt(stored, "record");
    if (!record.has_value()) continue;
    Json example = fields.empty() ? FeaturesExample(model.spec.records, stored)
                                  : ColumnsExample(fields, stored);
    if (example.is_null()) continue;
    example["record"] = *record;
    examples.push_back(std::move(example));
  }
  return examples;
}

// What a request for the nearest items has; null: the model finds none.
Json NearestFormJson(const RunModel& model) {
  const absl::StatusOr<QueryModel> queries = QueryModelOf(model);
  if (!queries.ok()) return Json();
  const auto columns = ColumnFieldsOf(queries->model.config, queries->model.spec);
  if (!columns.ok()) return Json();
  const size_t items = queries->retrieval.item_feature;
  Json json = {{"item_feature", model.spec.records.features[items].name}};
  for (const ColumnField& field : *columns) json["columns"].push_back(field.name);
  if (!columns->empty()) return json;
  for (const FeatureSpec& feature : queries->model.spec.records.features) {
    json["features"].push_back(feature.name);
  }
  return json;
}

}  // namespace

HttpResponse FormAnswer(const HttpRequest&, const Run& run) {
  std::optional<RunModel> model;
  run.Read([&](const RunData& data) { model = data.model; });
  if (!model.has_value()) return JsonError(404, "the model's configuration is not known");
  if (model->external()) {
    if (const auto form = ScriptFormOf(run)) return ScriptFormAnswer(run, *form);
    return JsonError(404, "the model is a script's: it has no form here");
  }
  const absl::StatusOr<std::vector<ColumnField>> fields =
      ColumnFieldsOf(model->config, model->spec);
  if (!fields.ok()) return JsonError(404, fields.status().message());
  Json json = {{"run", run.id()}, {"examples", Examples(run, *model, *fields)}};
  for (const ColumnField& field : *fields) json["columns"].push_back(FieldJson(field));
  if (Json nearest = NearestFormJson(*model); !nearest.is_null()) {
    json["nearest"] = std::move(nearest);
  }
  return JsonAnswer(json);
}

}  // namespace keelson
