#include "cli/snapshot_check.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/ckpt_tables.h"
#include "core/base/crc32c.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_contents.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/index_table.h"
#include "core/checkpoint/string_tensor.h"
#include "core/tensor_files/keelson_state.h"

namespace keelson {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;

absl::StatusOr<uint32_t> StoredBytesCrc(const RandomAccessFile& file, const StoredSlice& slice) {
  std::string chunk(std::min(slice.size, kChunkBytes), '\0');
  uint32_t crc = 0;
  for (uint64_t begin = 0; begin < slice.size; begin += kChunkBytes) {
    const uint64_t size = std::min(kChunkBytes, slice.size - begin);
    RETURN_IF_ERROR(file.Read(slice.offset + begin, size, chunk.data()));
    crc = Crc32cExtend(crc, {chunk.data(), size});
  }
  return crc;
}

absl::StatusOr<uint32_t> StringsCrc(const RandomAccessFile& file, const StoredSlice& slice) {
  std::string bytes(slice.size, '\0');
  RETURN_IF_ERROR(file.Read(slice.offset, bytes.size(), bytes.data()));
  ASSIGN_OR_RETURN(const DecodedStrings decoded,
                   DecodeStringTensor(bytes, SliceShape(slice.position).num_elements()));
  return decoded.crc;
}

class Checker {
 public:
  explicit Checker(std::string prefix) : prefix_(std::move(prefix)) {}

  SnapshotCheck Run() && {
    const std::string path = IndexPath(prefix_);
    const absl::StatusOr<IndexTable> index = ReadIndexTable(FileSystem::Real(), path);
    if (!index.ok()) return Failed(index.status().message());
    absl::StatusOr<BundleContents> contents = ParseBundleContents(*index);
    if (!contents.ok()) return Failed(absl::StrCat(path, ": ", contents.status().message()));
    contents_ = *std::move(contents);
    OpenDataFiles();
    for (const auto& [name, tensor] : contents_.tensors) CheckTensor(tensor);
    // The reader checks the data files itself, so it adds nothing where one is damaged.
    if (check_.problems.empty()) CheckState();
    return std::move(check_);
  }

 private:
  SnapshotCheck Failed(absl::string_view problem) {
    check_.problems.emplace_back(problem);
    return std::move(check_);
  }

  std::string DataFile(size_t number) const {
    return DataPath(prefix_, number, contents_.data_sizes.size());
  }

  void OpenDataFiles() {
    for (size_t i = 0; i < contents_.data_sizes.size(); ++i) {
      files_.push_back(nullptr);
      const uint64_t expected = contents_.data_sizes[i];
      if (expected == 0) continue;
      const std::string path = DataFile(i);
      absl::StatusOr<std::unique_ptr<RandomAccessFile>> file =
          FileSystem::Real()->OpenForRead(path);
      if (!file.ok()) {
        check_.problems.emplace_back(file.status().message());
      } else if ((*file)->size() != expected) {
        check_.problems.push_back(
            absl::StrCat(path, ": has ", (*file)->size(), " bytes, expected ", expected));
      } else {
        files_.back() = *std::move(file);
      }
    }
  }

  void CheckTensor(const StoredTensor& tensor) {
    ++check_.tensors;
    if (tensor.dtype != BundleDtype::kString && !ChecksumIsOfStoredBytes(tensor.dtype)) {
      check_.not_checked.push_back(
          absl::StrCat("'", tensor.name, "' of type ", DtypeName(tensor.dtype)));
      return;
    }
    for (const StoredSlice& slice : tensor.slices) {
      const absl::Status status = CheckSlice(tensor, slice);
      if (!status.ok()) {
        check_.problems.push_back(absl::StrCat(DataFile(slice.data_shard), ": tensor '",
                                               tensor.name, "' in bytes [", slice.offset, ", ",
                                               slice.offset + slice.size, "): ", status.message()));
      }
    }
  }

  absl::Status CheckSlice(const StoredTensor& tensor, const StoredSlice& slice) {
    const bool strings = tensor.dtype == BundleDtype::kString;
    const RandomAccessFile* file = files_[slice.data_shard].get();
    if (file == nullptr && slice.size > 0)
      return absl::OkStatus();  // Reported as the file's problem.
    uint32_t crc = 0;
    if (slice.size > 0) {
      ASSIGN_OR_RETURN(crc, strings ? StringsCrc(*file, slice) : StoredBytesCrc(*file, slice));
    }
    if (MaskCrc32c(crc) != slice.masked_crc) return absl::DataLossError("checksum mismatch");
    check_.bytes += static_cast<int64_t>(slice.size);
    return absl::OkStatus();
  }

  void CheckState() {
    const absl::StatusOr<std::unique_ptr<BundleReader>> bundle = BundleReader::Open(prefix_);
    absl::Status status = bundle.ok() ? ReadKeelsonState(**bundle).status() : bundle.status();
    if (status.ok()) status = CheckTables(**bundle);
    if (!status.ok()) check_.problems.emplace_back(status.message());
  }

  const std::string prefix_;
  BundleContents contents_;
  // Null: the file is empty or damaged.
  std::vector<std::unique_ptr<RandomAccessFile>> files_;
  SnapshotCheck check_;
};

}  // namespace

SnapshotCheck CheckSnapshot(const std::string& prefix) { return Checker(prefix).Run(); }

}  // namespace keelson
