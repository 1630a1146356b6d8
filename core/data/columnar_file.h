// A columnar file (columnar_layout.h) that is mapped into memory.
#ifndef KEELSON_CORE_DATA_COLUMNAR_FILE_H_
#define KEELSON_CORE_DATA_COLUMNAR_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/columnar_layout.h"

namespace keelson {

// Immutable; any number of threads may use it together. The file stays as it is while this is
// there: who cuts it short may end the process (RandomAccessFile::Map).
class ColumnarFile {
 public:
  // Reads the directory, and checks it. `file_system` outlives the file. DATA_LOSS, naming the
  // file: it is no columnar file, or a damaged one. Others: the file system's.
  static absl::StatusOr<std::unique_ptr<ColumnarFile>> Open(const std::string& path,
                                                            FileSystem* file_system);

  const std::string& path() const { return file_->path(); }
  const ColumnarLayout& layout() const { return layout_; }

  // Where the part of an array begins for a group, if it was checked before; otherwise null.
  const char* Checked(int64_t group, size_t array) const {
    return begins_[array * groups_ + static_cast<size_t>(group)].load(std::memory_order_acquire);
  }
  // Checks it, and with a bag's offsets or ids all parts of this bag: checksum, ids that are not
  // above the greatest one, labels not outside their extremes, offsets that are ones. DATA_LOSS.
  absl::Status Check(int64_t group, size_t array) const;
  // Checks all of them.
  absl::Status CheckAll() const;

  // FAILED_PRECONDITION: the file is another one than that which was opened, or is gone.
  absl::Status CheckUnchanged() const;

 private:
  ColumnarFile(std::unique_ptr<RandomAccessFile> file, FileSystem* file_system)
      : file_(std::move(file)), file_system_(file_system) {}

  absl::Status Load();
  absl::Status CheckPart(int64_t group, size_t array) const;
  absl::Status CheckFeature(int64_t group, size_t feature) const;
  absl::Status CheckLabel(int64_t group, size_t label) const;
  const ColumnarPart& PartOf(int64_t group, size_t array) const {
    return layout_.parts[static_cast<size_t>(group) * arrays_ + array];
  }
  absl::Status Damaged(int64_t group, const std::string& column, const std::string& expected) const;

  const std::unique_ptr<RandomAccessFile> file_;
  FileSystem* const file_system_;
  int64_t modified_nanos_ = 0;
  const char* bytes_ = nullptr;
  std::vector<uint64_t> unmapped_;  // the content where it cannot be mapped
  ColumnarLayout layout_;
  size_t arrays_ = 0;
  size_t groups_ = 0;
  // By array and group: where a part begins that was checked.
  mutable std::vector<std::atomic<const char*>> begins_;
};

// Whether a file begins as a columnar one does. Errors are the file system's.
absl::StatusOr<bool> IsColumnarFile(const std::string& path, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNAR_FILE_H_
