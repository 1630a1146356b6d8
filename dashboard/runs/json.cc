#include "dashboard/runs/json.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace keelson {
namespace {

constexpr int kMaxDepth = 32;

const Json* FieldOf(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto field = object.find(key);
  return field == object.end() ? nullptr : &*field;
}

template <typename T>
void AppendShortest(T value, std::string* out) {
  char text[32];
  const std::to_chars_result result = std::to_chars(text, text + sizeof(text), value);
  out->append(text, result.ptr);
}

}  // namespace

std::optional<Json> ParseJson(absl::string_view text) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kMaxDepth; };
  Json json = Json::parse(text.begin(), text.end(), shallow, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<double> NumberAt(const Json& object, const char* key) {
  const Json* const field = FieldOf(object, key);
  if (field == nullptr || !field->is_number()) return std::nullopt;
  const auto value = field->get<double>();
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<int64_t> IntegerAt(const Json& object, const char* key) {
  const Json* const field = FieldOf(object, key);
  if (field == nullptr || !field->is_number_integer()) return std::nullopt;
  if (field->is_number_unsigned() && !std::in_range<int64_t>(field->get<uint64_t>())) {
    return std::nullopt;
  }
  return field->get<int64_t>();
}

std::optional<std::string> TextAt(const Json& object, const char* key) {
  const Json* const field = FieldOf(object, key);
  if (field == nullptr || !field->is_string()) return std::nullopt;
  return field->get<std::string>();
}

const Json* ListAt(const Json& object, const char* key) {
  const Json* const field = FieldOf(object, key);
  return field != nullptr && field->is_array() ? field : nullptr;
}

const Json* ObjectAt(const Json& object, const char* key) {
  const Json* const field = FieldOf(object, key);
  return field != nullptr && field->is_object() ? field : nullptr;
}

double ToSeconds(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

void AppendNumber(double value, std::string* out) {
  if (std::isfinite(value)) {
    AppendShortest(value, out);
  } else {
    out->append("null");
  }
}

void AppendNumber(int64_t value, std::string* out) { AppendShortest(value, out); }

void AppendText(absl::string_view text, std::string* out) {
  out->append(DumpJson(Json(std::string(text))));
}

}  // namespace keelson
