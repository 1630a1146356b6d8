#include "core/data/csv_columns.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"
#include "core/data/record_format.h"
#include "core/data/record_framing.h"
#include "core/data/record_index.h"

namespace keelson {

CsvSyntax CsvSyntaxOf(const v1::DataConfig::Csv& csv, const std::string& path) {
  CsvSyntax syntax;
  syntax.quotes = !csv.no_quotes();
  if (!csv.separator().empty()) {
    syntax.separator = csv.separator() == "tab" ? '\t' : csv.separator().front();
  } else if (absl::EndsWith(WithoutPackedSuffix(path), ".tsv")) {
    syntax.separator = '\t';
  }
  return syntax;
}

absl::StatusOr<std::string> ReadFirstLine(const std::string& path, FileSystem* file_system) {
  constexpr size_t kPieceBytes = 4096;
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, OpenByteStream(path, file_system));
  std::string line;
  for (size_t end = 0; line.size() < RecordIndex::kMaxRecordBytes;) {
    line.resize(end + kPieceBytes);
    ASSIGN_OR_RETURN(const size_t n, stream->Read(kPieceBytes, line.data() + end));
    line.resize(end + n);
    const size_t newline = line.find('\n', end);
    end += n;
    if (newline == std::string::npos && n == kPieceBytes) continue;
    absl::string_view text = absl::string_view(line).substr(0, newline);
    absl::ConsumePrefix(&text, kByteOrderMark);
    absl::ConsumeSuffix(&text, "\r");
    return std::string(text);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ":1: expected a line of at most ", RecordIndex::kMaxRecordBytes,
                   " bytes with the names of the columns, found a longer one"));
}

absl::StatusOr<std::vector<std::string>> CsvNames(const std::string& line, const CsvSyntax& syntax,
                                                  const std::string& path) {
  std::vector<std::string> names;
  std::list<std::string> kept;
  RecordError error;
  const bool sound = ForEachField(
      line, syntax, KeepIn(&kept), [&](const CsvField& field) { names.emplace_back(field.text); },
      &error);
  if (sound) return names;
  return absl::InvalidArgumentError(absl::StrCat(path, ":1:", error.column, ": expected ",
                                                 error.expected, ", found ", error.found));
}

MissingTexts::MissingTexts(const v1::DataConfig::Csv& csv)
    : texts_(csv.missing_values().begin(), csv.missing_values().end()) {
  if (texts_.empty()) texts_ = {"?", "NA", "NaN", "null", "NULL"};
  for (const std::string& text : texts_) {
    most_bytes_ = std::max(most_bytes_, text.size());
    if (!text.empty()) begins_[static_cast<unsigned char>(text.front())] = true;
  }
}

std::string MissingTexts::Join() const { return absl::StrJoin(texts_, "\n"); }

bool MissingTexts::IsListed(absl::string_view text) const {
  return std::find(texts_.begin(), texts_.end(), text) != texts_.end();
}

}  // namespace keelson
