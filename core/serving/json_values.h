// Errors about values of a request's JSON.
#ifndef KEELSON_CORE_SERVING_JSON_VALUES_H_
#define KEELSON_CORE_SERVING_JSON_VALUES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace keelson {

// How much of what a client sent a message repeats.
inline constexpr size_t kQuotedJsonBytes = 40;

// INVALID_ARGUMENT: "WHERE: expected EXPECTED, found FOUND".
absl::Status WrongValue(absl::string_view where, absl::string_view expected,
                        absl::string_view found);

// What was found: the value where it is short; null: "none". Bytes that are not UTF-8 are replaced.
std::string FoundText(const nlohmann::json* value);

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_JSON_VALUES_H_
