#include "core/data/csv_line.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/data/columns/number_text.h"

namespace keelson {
namespace {

constexpr char kQuote = '"';

// Behind the quotation mark that closes the text beginning at `at`; null: none does. `doubled`: the
// text has two together.
const char* CloseQuote(const char* at, const char* end, bool* doubled) {
  for (;;) {
    at = static_cast<const char*>(std::memchr(at, kQuote, end - at));
    if (at == nullptr || ++at == end || *at != kQuote) return at;
    *doubled = true;
    ++at;
  }
}

}  // namespace

bool ForEachField(absl::string_view line, const CsvSyntax& syntax,
                  absl::FunctionRef<absl::string_view(std::string)> unescaped,
                  absl::FunctionRef<void(const CsvField&)> visit, RecordError* error) {
  const char* const first = line.data();
  const char* const end = first + line.size();
  const char* at = first;
  const auto is_blank = [&](const char* c) {
    return (*c == ' ' || *c == '\t') && *c != syntax.separator;
  };
  const auto fail = [&](const char* where, std::string expected) {
    *error = {static_cast<size_t>(where - first) + 1, std::move(expected),
              FoundText(line.substr(where - first), absl::string_view(&syntax.separator, 1))};
    return false;
  };
  for (size_t index = 0;; ++index) {
    const char* const begin = at;
    const char* text = at;
    while (text < end && is_blank(text)) ++text;
    absl::string_view found;
    if (syntax.quotes && text < end && *text == kQuote) {
      bool doubled = false;
      const char* const closed = CloseQuote(text + 1, end, &doubled);
      if (closed == nullptr) return fail(text, "a quotation mark that is closed in its line");
      found = absl::string_view(text + 1, closed - text - 2);
      if (doubled) found = unescaped(absl::StrReplaceAll(found, {{"\"\"", "\""}}));
      at = closed;
      while (at < end && is_blank(at)) ++at;
      if (at < end && *at != syntax.separator) {
        return fail(at, "the field's end behind its quotation mark");
      }
    } else {
      at = first + std::min(line.find(syntax.separator, at - first), line.size());
      found = csv_internal::WithoutBlanks(text, at, syntax.separator);
    }
    visit({index, found, static_cast<size_t>(begin - first)});
    if (at == end) return true;
    ++at;
  }
}

}  // namespace keelson
