#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/data/data_commands.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"
#include "core/data/columns/value_hash.h"
#include "core/data/columns/value_items.h"
#include "core/summary/tf_record.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

// A part that is being written.
struct Part {
  std::string path;
  std::unique_ptr<AppendFile> file;
  std::string buffer;
  int64_t rows = 0;

  absl::Status Flush() {
    RETURN_IF_ERROR(file->Append(buffer));
    buffer.clear();
    return absl::OkStatus();
  }
  absl::Status Add(absl::string_view bytes, bool csv) {
    constexpr size_t kBufferBytes = 1 << 20;
    absl::StrAppend(&buffer, csv ? bytes : EncodeTfRecord(bytes), csv ? "\n" : "");
    return buffer.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }
};

absl::Status CheckSplit(const SplitOptions& options) {
  if (!(options.fraction > 0 && options.fraction < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fraction: expected a number between 0 and 1, found ", options.fraction));
  }
  if (!options.by.empty() && !options.time.empty()) {
    return absl::InvalidArgumentError("--time: expected no --by beside it, found both");
  }
  for (const std::string& path : {options.first, options.second}) {
    if (!HasPackedSuffix(path)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a name without \"",
                     absl::string_view(path).substr(WithoutPackedSuffix(path).size()),
                     "\", as plain files are written"));
  }
  return absl::OkStatus();
}

// The position of a column among the names of the file.
absl::StatusOr<size_t> ColumnOf(const RowFile& file, absl::string_view flag,
                                const std::string& name) {
  const auto found = std::find(file.names().begin(), file.names().end(), name);
  if (found != file.names().end()) return found - file.names().begin();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": expected a column of ", file.path(), ", found \"", name, "\""));
}

// The first value of a column as text; empty: there is none.
std::string TextOf(const ColumnValue& value) {
  std::string text;
  ForEachItem(value, "", [&](const ValueItem& item) {
    text = item.kind == ValueItem::Kind::kNumber ? absl::StrCat(item.number)
                                                 : std::string(ItemText(item).view());
    return false;
  });
  return text;
}

// The times of all rows, and which of them go into the first file.
class Times {
 public:
  // Reads the file once.
  absl::Status Read(const std::string& column, RowFile* file) {
    for (int64_t row = 0; row < file->size(); ++row) {
      RETURN_IF_ERROR(file->Read(row));
      ASSIGN_OR_RETURN(const size_t position, ColumnOf(*file, "--time", column));
      std::string text = TextOf(file->values()[position]);
      if (text.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(file->path(), ": row ", row + 1,
                                                       ": expected a time in the column \"", column,
                                                       "\", found none"));
      }
      double number = 0;
      all_numbers_ = all_numbers_ && absl::SimpleAtod(text, &number);
      numbers_.push_back(number);
      texts_.push_back(std::move(text));
    }
    return absl::OkStatus();
  }

  // A `fraction` of the rows is before the limit, or fewer where rows have its time.
  absl::Status SetLimit(double fraction) {
    std::vector<size_t> rows(texts_.size());
    std::iota(rows.begin(), rows.end(), 0);
    const auto at = static_cast<ptrdiff_t>(fraction * static_cast<double>(rows.size()));
    std::nth_element(rows.begin(), rows.begin() + at, rows.end(),
                     [this](size_t a, size_t b) { return IsBefore(a, b); });
    limit_ = rows[at];
    const bool any =
        std::any_of(rows.begin(), rows.end(), [this](size_t row) { return IsBeforeLimit(row); });
    if (any) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--time: expected times before ", texts_[limit_],
                                                   ", which is at the fraction, found none"));
  }

  bool IsBeforeLimit(size_t row) const { return IsBefore(row, limit_); }

 private:
  bool IsBefore(size_t a, size_t b) const {
    return all_numbers_ ? numbers_[a] < numbers_[b] : texts_[a] < texts_[b];
  }

  std::vector<std::string> texts_;
  std::vector<double> numbers_;
  bool all_numbers_ = true;
  size_t limit_ = 0;  // a row
};

// What a row goes by: its time, the values of a column, or its number.
class Side {
 public:
  explicit Side(const SplitOptions& options)
      : options_(options), below_(static_cast<uint64_t>(options.fraction * 0x1p63)) {}

  // Reads all rows where they go by their times.
  absl::Status Prepare(RowFile* file) {
    if (options_.time.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(times_.Read(options_.time, file));
    return times_.SetLimit(options_.fraction);
  }

  absl::StatusOr<bool> IsFirst(const RowFile& file, int64_t row) const {
    if (!options_.time.empty()) return times_.IsBeforeLimit(static_cast<size_t>(row));
    if (options_.by.empty()) return IsFirstHash(MixId(static_cast<uint64_t>(row), options_.seed));
    const auto& names = file.names();
    const auto found = std::find(names.begin(), names.end(), options_.by);
    // A column of examples may come with a later one.
    if (found == names.end() && !file.is_csv()) return IsFirstHash(HashValue("", options_.seed));
    ASSIGN_OR_RETURN(const size_t position, ColumnOf(file, "--by", options_.by));
    uint64_t hash = options_.seed;
    ForEachItem(file.values()[position], "", [&](const ValueItem& item) {
      hash = HashValue(item.kind == ValueItem::Kind::kNumber ? absl::StrCat(item.number)
                                                             : std::string(ItemText(item).view()),
                       hash);
      return true;
    });
    return IsFirstHash(MixId(hash, options_.seed));
  }

 private:
  bool IsFirstHash(uint64_t hash) const { return hash >> 1 < below_; }

  const SplitOptions& options_;
  const uint64_t below_;
  Times times_;
};

}  // namespace

absl::Status SplitRows(const SplitOptions& options, FileSystem* file_system, std::ostream* out) {
  RETURN_IF_ERROR(CheckSplit(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<RowFile> file, RowFile::Open(options.file, file_system));
  Side side(options);
  RETURN_IF_ERROR(side.Prepare(file.get()));
  std::array<Part, 2> parts;
  parts[0].path = options.first;
  parts[1].path = options.second;
  for (Part& part : parts) {
    ASSIGN_OR_RETURN(part.file, file_system->CreateExclusive(part.path));
    if (!file->header().empty()) RETURN_IF_ERROR(part.Add(file->header(), /*csv=*/true));
  }
  for (int64_t row = 0; row < file->size(); ++row) {
    RETURN_IF_ERROR(file->Read(row));
    ASSIGN_OR_RETURN(const bool first, side.IsFirst(*file, row));
    Part& part = parts[first ? 0 : 1];
    ++part.rows;
    RETURN_IF_ERROR(part.Add(file->bytes(), file->is_csv()));
  }
  for (Part& part : parts) {
    RETURN_IF_ERROR(part.Flush());
    RETURN_IF_ERROR(part.file->Close());
    *out << part.path << ": " << part.rows << " rows\n";
  }
  return absl::OkStatus();
}

}  // namespace keelson
