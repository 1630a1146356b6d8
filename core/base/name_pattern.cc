#include "core/base/name_pattern.h"

#include <cstddef>

namespace keelson {

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  // Where to continue when the last "*" matched too few characters.
  size_t star = absl::string_view::npos, after_star = 0;
  size_t p = 0, n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == absl::string_view::npos;
}

}  // namespace keelson
