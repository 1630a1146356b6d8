#include "core/cluster/host_pattern.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status UnpairedBrace(absl::string_view flag, absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": expected { and } in pairs, found \"", text, "\""));
}

absl::Status MalformedRange(absl::string_view flag, absl::string_view range,
                            absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": expected {FIRST..LAST}, two whole numbers with FIRST <= LAST, found {",
                   range, "} in \"", text, "\""));
}

absl::Status TooManyHosts(absl::string_view flag, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": expected at most ", kMaxPatternHosts,
                                                 " hosts, found more in \"", text, "\""));
}

struct Range {
  int64_t first = 0;
  int64_t last = 0;
  int width = 0;  // numbers are padded with zeros up to it
};

std::optional<int64_t> ParseNumber(absl::string_view digits) {
  int64_t number = 0;
  const bool plain = digits.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!plain || !absl::SimpleAtoi(digits, &number)) return std::nullopt;
  return number;
}

bool HasLeadingZero(absl::string_view digits) { return digits.size() > 1 && digits[0] == '0'; }

// "0..3"
std::optional<Range> ParseRange(absl::string_view text) {
  const size_t dots = text.find("..");
  if (dots == absl::string_view::npos) return std::nullopt;
  const absl::string_view first = text.substr(0, dots);
  const absl::string_view last = text.substr(dots + 2);
  const std::optional<int64_t> begin = ParseNumber(first), end = ParseNumber(last);
  if (!begin.has_value() || !end.has_value() || *begin > *end) return std::nullopt;
  const bool padded = HasLeadingZero(first) || HasLeadingZero(last);
  return Range{*begin, *end, padded ? static_cast<int>(std::max(first.size(), last.size())) : 0};
}

// An entry cut at its ranges: texts[0] ranges[0] texts[1] … texts[n].
struct Pattern {
  std::vector<absl::string_view> texts;
  std::vector<Range> ranges;
};

absl::StatusOr<Pattern> ParsePattern(absl::string_view flag, absl::string_view entry) {
  Pattern pattern;
  absl::string_view rest = entry;
  while (true) {
    const size_t open = rest.find_first_of("{}");
    pattern.texts.push_back(rest.substr(0, open));
    if (open == absl::string_view::npos) return pattern;
    const size_t close = rest.find('}', open);
    if (rest[open] == '}' || close == absl::string_view::npos) return UnpairedBrace(flag, entry);
    const absl::string_view inside = rest.substr(open + 1, close - open - 1);
    const std::optional<Range> range = ParseRange(inside);
    if (!range.has_value()) return MalformedRange(flag, inside, entry);
    pattern.ranges.push_back(*range);
    rest.remove_prefix(close + 1);
  }
}

// The entry's hosts are added to `hosts`.
absl::Status Expand(absl::string_view flag, absl::string_view entry,
                    std::vector<std::string>* hosts) {
  ASSIGN_OR_RETURN(const Pattern pattern, ParsePattern(flag, entry));
  const int64_t room = kMaxPatternHosts - static_cast<int64_t>(hosts->size());
  if (room == 0) return TooManyHosts(flag, entry);
  std::vector<std::string> expanded = {std::string(pattern.texts[0])};
  for (size_t r = 0; r < pattern.ranges.size(); ++r) {
    const Range& range = pattern.ranges[r];
    const int64_t steps = range.last - range.first;
    if (steps >= room / static_cast<int64_t>(expanded.size())) return TooManyHosts(flag, entry);
    std::vector<std::string> longer;
    for (const std::string& begin : expanded) {
      for (int64_t i = 0; i <= steps; ++i) {
        longer.push_back(
            absl::StrFormat("%s%0*d%s", begin, range.width, range.first + i, pattern.texts[r + 1]));
      }
    }
    expanded = std::move(longer);
  }
  hosts->insert(hosts->end(), expanded.begin(), expanded.end());
  return absl::OkStatus();
}

// Splits at commas outside of braces, so that a message shows the text between braces.
std::vector<absl::string_view> SplitEntries(absl::string_view list) {
  std::vector<absl::string_view> entries;
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !inside)) {
      entries.push_back(absl::StripAsciiWhitespace(list.substr(begin, i - begin)));
      begin = i + 1;
    } else if (list[i] == '{' || list[i] == '}') {
      inside = list[i] == '{';
    }
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHosts(absl::string_view flag,
                                                     absl::string_view list) {
  std::vector<std::string> hosts;
  if (list.empty()) return hosts;
  for (const absl::string_view entry : SplitEntries(list)) {
    RETURN_IF_ERROR(Expand(flag, entry, &hosts));
  }
  return hosts;
}

}  // namespace keelson
