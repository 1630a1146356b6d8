#include "core/base/name_pattern.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace keelson {
namespace {

// What the stars between these pieces of a pattern stand for in `name`, which matches it. The first
// fit is right: a piece that begins later leaves less for those after it.
std::vector<absl::string_view> StarsIn(const std::vector<absl::string_view>& pieces,
                                       absl::string_view name) {
  std::vector<absl::string_view> stars;
  absl::string_view rest = name.substr(pieces.front().size());
  for (size_t i = 1; i < pieces.size(); ++i) {
    const bool last = i + 1 == pieces.size();
    const size_t length = last ? rest.size() - pieces[i].size() : rest.find(pieces[i]);
    stars.push_back(rest.substr(0, length));
    rest.remove_prefix(length + pieces[i].size());
  }
  return stars;
}

}  // namespace

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

std::optional<std::string> MapName(absl::string_view from, absl::string_view to,
                                   absl::string_view name) {
  if (!MatchesPattern(from, name)) return std::nullopt;
  const std::vector<absl::string_view> stars = StarsIn(absl::StrSplit(from, '*'), name);
  const std::vector<absl::string_view> pieces = absl::StrSplit(to, '*');
  std::string mapped(pieces.front());
  for (size_t i = 1; i < pieces.size(); ++i) {
    absl::StrAppend(&mapped, i <= stars.size() ? stars[i - 1] : "", pieces[i]);
  }
  return mapped;
}

}  // namespace keelson
