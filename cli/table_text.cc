#include "cli/table_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/element.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/table_columns.h"
#include "core/table/row_id.h"
#include "core/tensor_files/pending_file.h"

namespace keelson {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// Those of a file.
class TextRows : public TensorSource {
 public:
  TextRows(const std::string& table, const std::vector<uint64_t>& ids,
           const std::vector<float>& values)
      : keys_{KeysTensorName(table), BundleDtype::kInt64,
              Shape({static_cast<int64_t>(ids.size())})},
        values_{ValuesTensorName(table), BundleDtype::kFloat32,
                Shape({static_cast<int64_t>(ids.size()), 1})},
        key_bytes_(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(uint64_t)),
        value_bytes_(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)) {}

  std::vector<TensorInfo> List() const override { return {keys_, values_}; }
  absl::StatusOr<std::string> Read(absl::string_view name) override {
    if (name == keys_.name) return key_bytes_;
    if (name == values_.name) return value_bytes_;
    return absl::NotFoundError(absl::StrCat("no tensor '", name, "'"));
  }

 private:
  const TensorInfo keys_;
  const TensorInfo values_;
  const std::string key_bytes_;
  const std::string value_bytes_;
};

absl::StatusOr<std::vector<std::pair<uint64_t, float>>> RowsById(const StoredTables& stored,
                                                                 const StoredTable& table) {
  std::vector<std::pair<uint64_t, float>> rows;
  TableColumns columns;
  for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
    RETURN_IF_ERROR(stored.Read(table, {}, partition, &columns));
    for (size_t i = 0; i < columns.ids.size(); ++i) {
      rows.push_back({columns.ids[i], columns.values[i]});
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return rows;
}

}  // namespace

bool IsTableText(absl::string_view path) { return absl::EndsWith(path, ".txt"); }

absl::Status WriteTableText(const std::string& path, const StoredTables& stored,
                            const StoredTable& table) {
  if (table.spec.dim != 1) {
    return absl::InvalidArgumentError(absl::StrCat("--format=text: table ", table.spec.name,
                                                   ": expected dim 1, found ", table.spec.dim));
  }
  std::vector<std::string> missing;
  RETURN_IF_ERROR(stored.CheckColumns(table, {}, &missing));
  ASSIGN_OR_RETURN(const auto rows, RowsById(stored, table));
  PendingFile pending(path);
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file,
                   FileSystem::Real()->OpenForAppend(pending.temporary_path(), /*truncate=*/true));
  std::string piece;
  for (const auto& [id, value] : rows) {
    absl::StrAppend(&piece, id, ":",
                    ElementText(BundleDtype::kFloat32, reinterpret_cast<const char*>(&value)),
                    "\n");
    if (piece.size() < kPieceBytes) continue;
    RETURN_IF_ERROR(file->Append(piece));
    piece.clear();
  }
  RETURN_IF_ERROR(file->Append(piece));
  RETURN_IF_ERROR(file->Close());
  return pending.Commit();
}

absl::StatusOr<std::unique_ptr<TensorSource>> OpenTableText(const std::string& path,
                                                            const std::string& table) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<uint64_t> ids;
  std::vector<float> values;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    uint64_t id = 0;
    float value = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(line.substr(0, colon), &id) ||
        !absl::SimpleAtof(line.substr(colon + 1), &value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", number, ": expected ID:VALUE, found \"", line.substr(0, 40), "\""));
    }
    ids.push_back(id);
    values.push_back(value);
  }
  return std::make_unique<TextRows>(table, ids, values);
}

}  // namespace keelson
