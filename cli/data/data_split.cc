#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/data/data_commands.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
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
  for (const std::string& path : {options.first, options.second}) {
    if (!absl::EndsWith(path, ".gz")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a name without \".gz\", as plain files are written"));
  }
  return absl::OkStatus();
}

// What a row goes by: the values of a column, or its number.
class Side {
 public:
  explicit Side(const SplitOptions& options)
      : options_(options), below_(static_cast<uint64_t>(options.fraction * 0x1p63)) {}

  absl::StatusOr<bool> IsFirst(const RowFile& file, int64_t row) const {
    if (options_.by.empty()) return IsFirstHash(MixId(static_cast<uint64_t>(row), options_.seed));
    const auto& names = file.names();
    const auto found = std::find(names.begin(), names.end(), options_.by);
    // A column of examples may come with a later one.
    if (found == names.end() && !file.is_csv()) return IsFirstHash(HashValue("", options_.seed));
    if (found == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--by: expected a column of ", file.path(),
                                                     ", found \"", options_.by, "\""));
    }
    uint64_t hash = options_.seed;
    ForEachItem(file.values()[found - names.begin()], "", [&](const ValueItem& item) {
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
};

}  // namespace

absl::Status SplitRows(const SplitOptions& options, FileSystem* file_system, std::ostream* out) {
  RETURN_IF_ERROR(CheckSplit(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<RowFile> file, RowFile::Open(options.file, file_system));
  std::array<Part, 2> parts;
  parts[0].path = options.first;
  parts[1].path = options.second;
  for (Part& part : parts) {
    ASSIGN_OR_RETURN(part.file, file_system->CreateExclusive(part.path));
    if (!file->header().empty()) RETURN_IF_ERROR(part.Add(file->header(), /*csv=*/true));
  }
  const Side side(options);
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
