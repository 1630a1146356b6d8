// Patterns for the names of variables, as configurations have them.
#ifndef KEELSON_CORE_BASE_NAME_PATTERN_H_
#define KEELSON_CORE_BASE_NAME_PATTERN_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

// Whether `name` is `pattern`, in which each "*" stands for any characters, also none.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

// The name that `name` has in another pattern: `to` with its first "*" replaced by what the first
// "*" of `from` stands for in `name`, its second by the second's, and so on. Each star of `from`
// stands for as few characters as it can, the last one for the rest. Stars of `to` beyond those of
// `from` are left out. Nullopt: `name` does not match `from`.
std::optional<std::string> MapName(absl::string_view from, absl::string_view to,
                                   absl::string_view name);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_NAME_PATTERN_H_
