#include "evaluator/script_form.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr uint64_t kMostExtents = 3;
constexpr uint64_t kMostInputs = 1 << 20;
constexpr size_t kMostColumns = 1000;
constexpr absl::string_view kColumnKinds[] = {"number", "integer", "text"};

absl::Status NoForm(absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("the script's predictions: expected ", expected, ", found ", found));
}

absl::StatusOr<std::vector<int64_t>> ReadShape(uint64_t extents, ScriptMessageReader* reader) {
  if (extents > kMostExtents) return NoForm("one to three extents", absl::StrCat(extents));
  std::vector<int64_t> shape;
  uint64_t elements = 1;
  for (uint64_t e = 0; e < extents; ++e) {
    const uint64_t extent = reader->Number();
    if (extent == 0 || extent > kMostInputs / elements) {
      return NoForm(absl::StrCat("1 to ", kMostInputs, " numbers"),
                    absl::StrCat("an extent of ", extent));
    }
    elements *= extent;
    shape.push_back(static_cast<int64_t>(extent));
  }
  return shape;
}

// "age\tnumber"
absl::StatusOr<ScriptColumn> ReadColumn(absl::string_view line) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits('\t', 1));
  const bool known = std::find(std::begin(kColumnKinds), std::end(kColumnKinds), parts.second) !=
                     std::end(kColumnKinds);
  if (parts.first.empty() || !known) {
    return NoForm("a column's name and number, integer or text",
                  absl::StrCat("\"", parts.first, "\" and \"", parts.second, "\""));
  }
  return ScriptColumn{parts.first, parts.second};
}

absl::StatusOr<std::vector<ScriptColumn>> ReadColumns(absl::string_view text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.size() > kMostColumns) {
    return NoForm(absl::StrCat("up to ", kMostColumns, " columns"), absl::StrCat(lines.size()));
  }
  std::vector<ScriptColumn> columns;
  std::set<std::string> names;
  for (const std::string& line : lines) {
    ASSIGN_OR_RETURN(ScriptColumn column, ReadColumn(line));
    if (!names.insert(column.name).second) {
      return NoForm("columns with names of their own", absl::StrCat("\"", column.name, "\" twice"));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

int64_t InputElements(const ScriptForm& form) {
  if (form.input_shape.empty()) return 0;
  int64_t elements = 1;
  for (const int64_t extent : form.input_shape) elements *= extent;
  return elements;
}

absl::StatusOr<ScriptForm> ReadScriptForm(const ScriptMessage& message) {
  ScriptMessageReader reader(message);
  ScriptForm form;
  const uint64_t extents = reader.Number();
  if (!reader.ok()) return NoForm("a shape or columns", "neither");
  ASSIGN_OR_RETURN(form.input_shape, ReadShape(extents, &reader));
  if (extents > 0) {
    return reader.AtEnd() ? absl::StatusOr<ScriptForm>(form)
                          : NoForm("a shape alone", "another length of the message");
  }
  ASSIGN_OR_RETURN(form.columns, ReadColumns(reader.Text()));
  return form;
}

}  // namespace keelson
