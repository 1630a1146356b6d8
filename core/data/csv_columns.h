// What a CSV file is like: its syntax, the names of its columns, and what counts as missing.
#ifndef KEELSON_CORE_DATA_CSV_COLUMNS_H_
#define KEELSON_CORE_DATA_CSV_COLUMNS_H_

#include <array>
#include <cstddef>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/data/csv_line.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// `csv` is checked (core/config). `path` may end with ".tsv", ".tsv.gz" or ".tsv.zst".
CsvSyntax CsvSyntaxOf(const v1::DataConfig::Csv& csv, const std::string& path);

// The first line of a file, without its end. INVALID_ARGUMENT: it is longer than
// RecordIndex::kMaxRecordBytes. Others: those of reading the file.
absl::StatusOr<std::string> ReadFirstLine(const std::string& path, FileSystem* file_system);

// The names of the columns that the first line of `path` has. INVALID_ARGUMENT: it is malformed.
absl::StatusOr<std::vector<std::string>> CsvNames(const std::string& line, const CsvSyntax& syntax,
                                                  const std::string& path);

// The texts that count as missing, beside the empty one.
class MissingTexts {
 public:
  explicit MissingTexts(const v1::DataConfig::Csv& csv);

  bool Have(absl::string_view text) const {
    if (text.empty()) return true;
    if (text.size() > most_bytes_ || !begins_[static_cast<unsigned char>(text.front())]) {
      return false;
    }
    return IsListed(text);
  }
  // All of them, for fingerprints.
  std::string Join() const;

 private:
  bool IsListed(absl::string_view text) const;

  std::vector<std::string> texts_;
  size_t most_bytes_ = 0;
  std::array<bool, 256> begins_ = {};
};

// For ForEachField: keeps the texts of fields in a list.
inline auto KeepIn(std::list<std::string>* kept) {
  return [kept](std::string text) -> absl::string_view {
    return kept->emplace_front(std::move(text));
  };
}

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_CSV_COLUMNS_H_
