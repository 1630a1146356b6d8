// Reads JSON from untrusted files, and writes JSON for a browser.
#ifndef KEELSON_DASHBOARD_RUNS_JSON_H_
#define KEELSON_DASHBOARD_RUNS_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {

using Json = nlohmann::json;

// nullopt: it is not JSON. Values nested deeper than 32 levels are left out.
std::optional<Json> ParseJson(absl::string_view text);

// Bytes that are not UTF-8 are replaced, numbers that are not finite become null.
std::string DumpJson(const Json& json);

// The value of an object's field; nullopt: it is absent, or of another type. A number is finite, an
// integer one of 64 bits.
std::optional<double> NumberAt(const Json& object, const char* key);
std::optional<int64_t> IntegerAt(const Json& object, const char* key);
std::optional<std::string> TextAt(const Json& object, const char* key);
// The list in a field; null: it is absent, or not a list.
const Json* ListAt(const Json& object, const char* key);
const Json* ObjectAt(const Json& object, const char* key);

// Seconds since the epoch, in microseconds' precision.
double ToSeconds(absl::Time time);

// Appends the shortest text that reads as the same number.
void AppendNumber(double value, std::string* out);
void AppendNumber(int64_t value, std::string* out);
// Appends a quoted string.
void AppendText(absl::string_view text, std::string* out);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_JSON_H_
