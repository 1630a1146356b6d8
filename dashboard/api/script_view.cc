#include "dashboard/api/script_view.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/scoring/probabilities.h"
#include "core/serving/example.h"
#include "core/serving/json_values.h"
#include "dashboard/api/api_request.h"

namespace keelson {
namespace {

// Such a message goes to the script as a whole.
constexpr size_t kMostColumnBytes = 32768;

absl::StatusOr<Json> NumberOf(const ScriptColumn& column, const Json& value) {
  const std::string place = absl::StrCat("columns.", column.name);
  const bool whole = column.kind == "integer";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    int64_t integer = 0;
    double number = 0;
    if (whole && absl::SimpleAtoi(text, &integer)) return Json(integer);
    if (!whole && absl::SimpleAtod(text, &number) && std::isfinite(number)) return Json(number);
  } else if (whole ? value.is_number_integer() : value.is_number()) {
    return value;
  }
  return WrongValue(place, whole ? "a whole number" : "a number", FoundText(&value));
}

absl::StatusOr<Json> ValueOf(const ScriptColumn& column, const Json& value) {
  if (value.is_null()) return value;
  if (column.kind != "text") return NumberOf(column, value);
  if (value.is_string()) return value;
  return WrongValue(absl::StrCat("columns.", column.name), "a text", FoundText(&value));
}

absl::StatusOr<std::string> ColumnsOf(const ScriptForm& form, const Json& body) {
  const auto found = body.find("columns");
  if (found == body.end() || !found->is_object()) {
    return WrongValue("columns", "an object with a value for each column",
                      FoundText(found == body.end() ? nullptr : &*found));
  }
  Json columns = Json::object();
  for (const ScriptColumn& column : form.columns) columns[column.name] = nullptr;
  for (const auto& [name, value] : found->items()) {
    const auto column =
        std::find_if(form.columns.begin(), form.columns.end(),
                     [&name = name](const auto& each) { return each.name == name; });
    if (column == form.columns.end()) {
      return WrongValue(absl::StrCat("columns.", name), "a column of the script's", "another one");
    }
    ASSIGN_OR_RETURN(columns[name], ValueOf(*column, value));
  }
  std::string text = columns.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kMostColumnBytes) return text;
  return WrongValue("columns", absl::StrCat("at most ", kMostColumnBytes, " bytes"),
                    absl::StrCat(text.size()));
}

Json AnswerJson(const ScriptForm& form, const ScriptPrediction& prediction) {
  Json json = {{"step", prediction.step}, {"kind", form.kind}, {"seconds", prediction.seconds}};
  std::vector<float> outputs = prediction.outputs;
  if (form.kind == "regression") {
    json["prediction"] = outputs.front();
    return json;
  }
  if (form.kind == "binary") outputs = {1 - outputs.front(), outputs.front()};
  json["probabilities"] = outputs;
  const int64_t predicted = PredictedClass(outputs);
  json["predicted"] = predicted < 0 ? Json() : Json(predicted);
  if (predicted >= 0 && predicted < static_cast<int64_t>(form.classes.size())) {
    json["class"] = form.classes[predicted];
  }
  return json;
}

}  // namespace

std::optional<ScriptForm> ScriptFormOf(const Run& run) {
  return run.script() == nullptr ? std::nullopt : run.script()->form();
}

void AddScriptTask(const ScriptForm& form, Json* task) {
  (*task)["kind"] = form.kind;
  if (!form.input_shape.empty()) (*task)["input_shape"] = form.input_shape;
  if (!form.classes.empty()) (*task)["classes"] = form.classes;
}

HttpResponse ScriptFormAnswer(const Run& run, const ScriptForm& form) {
  Json json = {{"run", run.id()}, {"examples", Json::array()}};
  for (const ScriptColumn& column : form.columns) {
    json["columns"].push_back({{"name", column.name}, {"kind", column.kind}, {"list", false}});
  }
  return JsonAnswer(json);
}

absl::StatusOr<ScriptInput> ScriptInputOf(const ScriptForm& form, const Json& body) {
  ScriptInput input;
  if (form.input_shape.empty()) {
    ASSIGN_OR_RETURN(input.columns, ColumnsOf(form, body));
    return input;
  }
  RecordSchema records;
  records.features.push_back({"features", Shape(form.input_shape)});
  ASSIGN_OR_RETURN(const Batch batch, ReadExample(records, body));
  const auto numbers = batch.features.front().numbers.span();
  input.numbers.assign(numbers.begin(), numbers.end());
  return input;
}

HttpResponse PredictByScript(const Json& body, const Run& run, const ScriptForm& form) {
  const absl::StatusOr<ScriptInput> input = ScriptInputOf(form, body);
  if (!input.ok()) return ErrorAnswer(input.status());
  const absl::StatusOr<ScriptPrediction> prediction = run.script()->Predict(*input);
  if (!prediction.ok()) return ErrorAnswer(prediction.status());
  Json json = AnswerJson(form, *prediction);
  json["run"] = run.id();
  return JsonAnswer(json);
}

}  // namespace keelson
