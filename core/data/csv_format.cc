#include "core/data/csv_format.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <list>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/data/columns/column_value.h"
#include "core/data/columns/record_maker.h"
#include "core/data/csv_columns.h"
#include "core/data/csv_line.h"

namespace keelson {
namespace {

// What the files are like, and where what the maker takes stands in them.
struct CsvLayout {
  CsvSyntax syntax;
  std::vector<std::string> header;
  bool in_file = true;  // the header
  // By column of a file that of the maker, or kUnused.
  std::vector<uint32_t> slots;
};

constexpr uint32_t kUnused = std::numeric_limits<uint32_t>::max();

class CsvFormat : public RecordFormat {
 public:
  CsvFormat(std::unique_ptr<const RecordMaker> maker, CsvLayout layout,
            const v1::DataConfig::Csv& csv)
      : RecordFormat(maker->schema()),
        maker_(std::move(maker)),
        layout_(std::move(layout)),
        missing_(csv) {}

  uint64_t fingerprint() const override {
    constexpr int kRules = 1;  // counts up when the code calls other lines records
    const CsvSyntax& syntax = layout_.syntax;
    return StableHash(absl::StrCat("csv ", kRules, " ", maker_->fingerprint(), " ",
                                   std::string(1, syntax.separator), syntax.quotes, " ",
                                   layout_.in_file, " ", missing_.Join(), "\n\n",
                                   absl::StrJoin(layout_.header, "\n"))) |
           1;
  }

  bool has_header() const override { return layout_.in_file; }

  bool CheckHeader(absl::string_view line, RecordError* error) const override {
    size_t count = 0;
    bool equal = true;
    const auto compare = [&](const CsvField& field) {
      ++count;
      const std::vector<std::string>& header = layout_.header;
      if (!equal || field.index >= header.size() || field.text == header[field.index]) return;
      equal = false;
      *error = {field.begin + 1,
                absl::StrCat("the column \"", absl::Utf8SafeCHexEscape(header[field.index]),
                             "\", as in the first file"),
                absl::StrCat("\"", absl::Utf8SafeCHexEscape(field.text), "\"")};
    };
    std::list<std::string> kept;
    if (!ForEachField(line, layout_.syntax, KeepIn(&kept), compare, error) || !equal) return false;
    return count == layout_.header.size() || WrongCount(line, count, error);
  }

  bool Parse(absl::string_view line, int64_t row, Batch* batch, RecordError* error) const override {
    return WithValues(line, error, [&](absl::Span<const ColumnValue> values) {
      ColumnError wrong;
      return maker_->Fill(values, row, batch, &wrong) || WrongValue(line, wrong, error);
    });
  }

  RecordColumns Columns(absl::string_view line) const override {
    RecordColumns columns;
    RecordError error;
    WithValues(line, &error, [&](absl::Span<const ColumnValue> values) {
      columns = ColumnTexts(maker_->columns(), values);
      return true;
    });
    return columns;
  }

 private:
  // What `use` returns for the values of the maker's columns; false: the line is malformed.
  template <typename Use>
  bool WithValues(absl::string_view line, RecordError* error, Use use) const {
    absl::FixedArray<ColumnValue, 64> values(maker_->columns().size());
    std::list<std::string> kept;
    const uint32_t* const slots = layout_.slots.data();
    const size_t expected = layout_.slots.size();
    ColumnValue* const taken = values.data();
    const auto take = [=, this](const CsvField& field) {
      if (field.index >= expected) return;
      const uint32_t slot = slots[field.index];
      if (slot != kUnused && !missing_.Have(field.text)) {
        taken[slot] = ColumnValue::Text(field.text);
      }
    };
    size_t count = 0;
    if (!layout_.syntax.quotes || std::memchr(line.data(), '"', line.size()) == nullptr) {
      count = ForEachPlainField(line, layout_.syntax.separator, take);
    } else {
      const auto take_and_count = [&](const CsvField& field) {
        count = field.index + 1;
        take(field);
      };
      if (!ForEachField(line, layout_.syntax, KeepIn(&kept), take_and_count, error)) return false;
    }
    if (count != layout_.slots.size()) return WrongCount(line, count, error);
    return use(values);
  }

  bool WrongCount(absl::string_view line, size_t count, RecordError* error) const {
    *error = {line.size() + 1, absl::StrCat(layout_.slots.size(), " columns"),
              line.empty() ? "an empty line" : absl::StrCat(count)};
    return false;
  }

  bool WrongValue(absl::string_view line, const ColumnError& wrong, RecordError* error) const {
    size_t begin = 0;
    const auto find = [&](const CsvField& field) {
      if (layout_.slots[field.index] == wrong.column) begin = field.begin;
    };
    std::list<std::string> kept;
    ForEachField(line, layout_.syntax, KeepIn(&kept), find, error);
    *error = {
        begin + 1,
        absl::StrCat(wrong.expected, " in the column \"", maker_->columns()[wrong.column], "\""),
        wrong.found};
    return false;
  }

  const std::unique_ptr<const RecordMaker> maker_;
  const CsvLayout layout_;
  const MissingTexts missing_;
};

std::string SomeOf(const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  const absl::Span<const std::string> first =
      absl::MakeSpan(names).first(std::min(kMost, names.size()));
  return absl::StrCat(absl::Utf8SafeCHexEscape(absl::StrJoin(first, ", ")),
                      names.size() > kMost ? ", ..." : "");
}

absl::Status FindColumns(const RecordMaker& maker, const std::string& where, CsvLayout* layout) {
  layout->slots.assign(layout->header.size(), kUnused);
  for (size_t slot = 0; slot < maker.columns().size(); ++slot) {
    const std::string& name = maker.columns()[slot];
    const auto begin = layout->header.begin(), end = layout->header.end();
    const auto count = std::count(begin, end, name);
    if (count == 1) {
      layout->slots[std::find(begin, end, name) - begin] = static_cast<uint32_t>(slot);
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected ", count == 0 ? "a" : "one", " column \"", name, "\" (",
                     maker.needed_by(slot), "), found ",
                     count == 0 ? SomeOf(layout->header) : absl::StrCat(count)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RecordFormat>> NewCsvFormat(const v1::DataConfig& data,
                                                                 const RecordSchema& schema,
                                                                 const std::string& path,
                                                                 FileSystem* file_system) {
  const v1::DataConfig::Csv& csv = data.csv();
  ASSIGN_OR_RETURN(std::unique_ptr<const RecordMaker> maker,
                   RecordMaker::Create(data, schema, file_system));
  CsvLayout layout;
  layout.syntax = CsvSyntaxOf(csv, path);
  layout.in_file = csv.header().empty();
  if (layout.in_file) {
    ASSIGN_OR_RETURN(const std::string line, ReadFirstLine(path, file_system));
    ASSIGN_OR_RETURN(layout.header, CsvNames(line, layout.syntax, path));
  } else {
    layout.header.assign(csv.header().begin(), csv.header().end());
  }
  RETURN_IF_ERROR(FindColumns(*maker, layout.in_file ? path : "data.csv.header", &layout));
  return std::make_unique<CsvFormat>(std::move(maker), std::move(layout), csv);
}

}  // namespace keelson
