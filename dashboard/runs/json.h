// JSON of files that anyone may have written, and JSON for a browser.
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

// nullopt: it is not JSON. What is nested deeper than 32 levels is left out.
std::optional<Json> ParseJson(absl::string_view text);

// Bytes that are not UTF-8 are replaced, numbers that are not finite become null.
std::string DumpJson(const Json& json);

// Of an object's field; nullopt: it is not there, or of another type. A number is finite,
// an integer one of 64 bits.
std::optional<double> NumberAt(const Json& object, const char* key);
std::optional<int64_t> IntegerAt(const Json& object, const char* key);
std::optional<std::string> TextAt(const Json& object, const char* key);
// Null: it is not there, or not a list.
const Json* ListAt(const Json& object, const char* key);
const Json* ObjectAt(const Json& object, const char* key);

// Seconds since the epoch, in microseconds' precision.
double ToSeconds(absl::Time time);

// As JSON has it, the shortest text that reads as the same number.
void AppendNumber(double value, std::string* out);
void AppendNumber(int64_t value, std::string* out);
// With quotes.
void AppendText(absl::string_view text, std::string* out);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_JSON_H_
