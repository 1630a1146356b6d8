#include "core/data/columnar_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/crc32c.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status NotColumnar(const std::string& path, absl::string_view found) {
  return absl::DataLossError(
      absl::StrCat(path, ": expected a file that \"keelson_data convert\" wrote, found ", found));
}

template <typename Number>
absl::Span<const Number> NumbersAt(const char* begin, uint64_t bytes) {
  return {reinterpret_cast<const Number*>(begin), bytes / sizeof(Number)};
}

bool AreOffsets(absl::Span<const uint64_t> offsets, uint64_t end) {
  return offsets.front() == 0 && offsets.back() == end &&
         std::is_sorted(offsets.begin(), offsets.end());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ColumnarFile>> ColumnarFile::Open(const std::string& path,
                                                                 FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> content, file_system->OpenForRead(path));
  std::unique_ptr<ColumnarFile> file(new ColumnarFile(std::move(content), file_system));
  RETURN_IF_ERROR(file->Load());
  return file;
}

absl::Status ColumnarFile::Load() {
  ASSIGN_OR_RETURN(const absl::Time modified, file_system_->ModificationTime(path()));
  modified_nanos_ = absl::ToUnixNanos(modified);
  const uint64_t size = file_->size();
  if (size < kColumnarAlignment + kColumnarTrailerBytes) {
    return NotColumnar(path(), absl::StrCat(size, " bytes"));
  }
  std::string magic(kColumnarMagic.size(), '\0'), trailer_bytes(kColumnarTrailerBytes, '\0');
  RETURN_IF_ERROR(file_->Read(0, magic.size(), magic.data()));
  if (magic != kColumnarMagic) return NotColumnar(path(), "other bytes");
  RETURN_IF_ERROR(
      file_->Read(size - trailer_bytes.size(), trailer_bytes.size(), trailer_bytes.data()));
  const absl::StatusOr<ColumnarTrailer> trailer = DecodeColumnarTrailer(trailer_bytes, size);
  if (!trailer.ok()) return InFile(path(), trailer.status());
  std::string directory(trailer->bytes, '\0');
  RETURN_IF_ERROR(file_->Read(trailer->begin, directory.size(), directory.data()));
  absl::StatusOr<ColumnarLayout> layout = DecodeColumnarDirectory(directory, *trailer);
  if (!layout.ok()) return InFile(path(), layout.status());
  layout_ = *std::move(layout);
  arrays_ = layout_.num_arrays();
  groups_ = static_cast<size_t>(layout_.num_groups());
  begins_ = std::vector<std::atomic<const char*>>(arrays_ * groups_);
  bytes_ = file_->Map();
  if (bytes_ != nullptr) return absl::OkStatus();
  unmapped_.resize((size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  char* const memory = reinterpret_cast<char*>(unmapped_.data());
  bytes_ = memory;
  return file_->Read(0, size, memory);
}

absl::Status ColumnarFile::Damaged(int64_t group, const std::string& column,
                                   const std::string& expected) const {
  const int64_t first = group * kColumnarGroup;
  return absl::DataLossError(absl::StrCat(
      path(), ": records ", first, " to ", first + layout_.GroupRecords(group) - 1, " of \"",
      absl::Utf8SafeCHexEscape(column), "\": expected ", expected, ", found other data"));
}

absl::Status ColumnarFile::Check(int64_t group, size_t array) const {
  size_t first = 0;
  for (size_t i = 0; i < layout_.features.size(); ++i) {
    first += ColumnarArrays(layout_.features[i].spec);
    if (array < first) return CheckFeature(group, i);
  }
  return CheckLabel(group, array - first);
}

absl::Status ColumnarFile::CheckPart(int64_t group, size_t array) const {
  const ColumnarPart& part = PartOf(group, array);
  const absl::string_view bytes(bytes_ + part.offset, part.bytes);
  return MaskCrc32c(Crc32c(bytes)) == part.crc ? absl::OkStatus() : absl::DataLossError("");
}

absl::Status ColumnarFile::CheckFeature(int64_t group, size_t feature) const {
  const ColumnarFeature& column = layout_.features[feature];
  const size_t first = layout_.ArrayOfFeature(feature), count = ColumnarArrays(column.spec);
  for (size_t i = first; i < first + count; ++i) {
    if (CheckPart(group, i).ok()) continue;
    return Damaged(group, column.spec.name, "data that fits its checksum");
  }
  if (column.spec.kind != FeatureKind::kNumbers) {
    const bool bag = column.spec.kind == FeatureKind::kBag;
    const ColumnarPart& id_part = PartOf(group, bag ? first + 1 : first);
    const auto ids = NumbersAt<uint64_t>(bytes_ + id_part.offset, id_part.bytes);
    const bool in_range =
        std::all_of(ids.begin(), ids.end(), [&](uint64_t id) { return id <= column.max_id; });
    if (!in_range) {
      return Damaged(group, column.spec.name, absl::StrCat("ids up to ", column.max_id));
    }
    const ColumnarPart& part = PartOf(group, first);
    if (bag && !AreOffsets(NumbersAt<uint64_t>(bytes_ + part.offset, part.bytes), ids.size())) {
      return Damaged(group, column.spec.name, "offsets that ascend to the number of ids");
    }
  }
  for (size_t i = first; i < first + count; ++i) {
    begins_[i * groups_ + static_cast<size_t>(group)].store(bytes_ + PartOf(group, i).offset,
                                                            std::memory_order_release);
  }
  return absl::OkStatus();
}

absl::Status ColumnarFile::CheckLabel(int64_t group, size_t label) const {
  const ColumnarLabel& column = layout_.labels[label];
  const size_t array = layout_.ArrayOfLabel(label);
  const ColumnarPart& part = PartOf(group, array);
  if (!CheckPart(group, array).ok()) {
    return Damaged(group, column.name, "data that fits its checksum");
  }
  const auto labels = NumbersAt<float>(bytes_ + part.offset, part.bytes);
  const bool sound = std::all_of(labels.begin(), labels.end(), [&](float value) {
    return value >= column.min && value <= column.max &&
           (!column.whole || value == std::floor(value));
  });
  if (!sound) return Damaged(group, column.name, "labels as the directory describes them");
  begins_[array * groups_ + static_cast<size_t>(group)].store(bytes_ + part.offset,
                                                              std::memory_order_release);
  return absl::OkStatus();
}

absl::Status ColumnarFile::CheckAll() const {
  for (int64_t group = 0; group < layout_.num_groups(); ++group) {
    for (size_t i = 0; i < layout_.features.size(); ++i) {
      RETURN_IF_ERROR(CheckFeature(group, i));
    }
    for (size_t i = 0; i < layout_.labels.size(); ++i) RETURN_IF_ERROR(CheckLabel(group, i));
  }
  return CheckUnchanged();
}

absl::Status ColumnarFile::CheckUnchanged() const {
  const absl::StatusOr<absl::Time> modified = file_system_->ModificationTime(path());
  if (modified.ok() && absl::ToUnixNanos(*modified) == modified_nanos_) return absl::OkStatus();
  if (!modified.ok() && !absl::IsNotFound(modified.status())) return modified.status();
  return absl::FailedPreconditionError(
      absl::StrCat(path(), ": expected the file as it was when it was opened, found ",
                   modified.ok() ? "it changed" : "none"));
}

absl::StatusOr<bool> IsColumnarFile(const std::string& path, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, file_system->OpenForRead(path));
  if (file->size() < kColumnarMagic.size()) return false;
  std::string magic(kColumnarMagic.size(), '\0');
  RETURN_IF_ERROR(file->Read(0, magic.size(), magic.data()));
  return magic == kColumnarMagic;
}

}  // namespace keelson
