// Patterns for the names of variables, as configurations have them.
#ifndef KEELSON_CORE_BASE_NAME_PATTERN_H_
#define KEELSON_CORE_BASE_NAME_PATTERN_H_

#include "absl/strings/string_view.h"

namespace keelson {

// Whether `name` is `pattern`, in which each "*" stands for any characters, also none.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_NAME_PATTERN_H_
