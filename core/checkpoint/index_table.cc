#include "core/checkpoint/index_table.h"

#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/varint.h"
#include "leveldb/env.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/table.h"
#include "leveldb/table_builder.h"

namespace keelson {
namespace {

constexpr size_t kBlockSize = 262144;
// Two block handles, padded to 40 bytes, and the magic number.
constexpr size_t kFooterBytes = 48;
constexpr size_t kHandleBytes = 40;
constexpr char kMagic[] = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
// Compression type and checksum, after each block.
constexpr uint64_t kTrailerBytes = 5;
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 30;

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

absl::Status DamagedIndex(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": damaged index: ", what));
}

absl::Status FromLeveldb(const leveldb::Status& status, const std::string& path) {
  if (status.ok()) return absl::OkStatus();
  return DamagedIndex(path, status.ToString());
}

bool ReadHandle(absl::string_view* in, uint64_t blocks_end, BlockHandle* handle) {
  return ConsumeVarint(in, &handle->offset) && ConsumeVarint(in, &handle->size) &&
         handle->offset <= blocks_end && handle->size <= blocks_end - handle->offset &&
         kTrailerBytes <= blocks_end - handle->offset - handle->size;
}

// The handles as in a footer, padded.
std::string EncodeHandles(const BlockHandle& metaindex, const BlockHandle& index) {
  std::string bytes;
  for (const BlockHandle& handle : {metaindex, index}) {
    AppendVarint(handle.offset, &bytes);
    AppendVarint(handle.size, &bytes);
  }
  bytes.resize(kHandleBytes, '\0');
  return bytes;
}

absl::Status CheckBlock(const std::string& path, absl::string_view content,
                        const BlockHandle& handle) {
  const absl::string_view block = content.substr(handle.offset, handle.size + kTrailerBytes);
  uint32_t stored;
  std::memcpy(&stored, block.data() + handle.size + 1, sizeof(stored));
  if (MaskCrc32c(Crc32c(block.substr(0, handle.size + 1))) == stored) return absl::OkStatus();
  return DamagedIndex(path, "block checksum mismatch");
}

// The footer has no checksum, and leveldb allocates what its handles say. It also never looks at
// the metaindex block of a table without filters.
absl::Status CheckFooter(const std::string& path, absl::string_view content) {
  if (content.size() < kFooterBytes) return DamagedIndex(path, "too short for a footer");
  const uint64_t blocks_end = content.size() - kFooterBytes;
  const absl::string_view footer = content.substr(blocks_end);
  if (std::memcmp(footer.data() + kHandleBytes, kMagic, kFooterBytes - kHandleBytes) != 0) {
    return DamagedIndex(path, "bad magic number");
  }
  absl::string_view handles = footer.substr(0, kHandleBytes);
  BlockHandle metaindex, index;
  if (!ReadHandle(&handles, blocks_end, &metaindex) || !ReadHandle(&handles, blocks_end, &index) ||
      EncodeHandles(metaindex, index) != footer.substr(0, kHandleBytes)) {
    return DamagedIndex(path, "bad block handle in the footer");
  }
  RETURN_IF_ERROR(CheckBlock(path, content, metaindex));
  return CheckBlock(path, content, index);
}

// The file to which leveldb's table builder writes.
class StringFile : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    content_.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  const std::string& content() const { return content_; }

 private:
  std::string content_;
};

// The file from which leveldb reads a table.
class StringSource : public leveldb::RandomAccessFile {
 public:
  explicit StringSource(absl::string_view content) : content_(content) {}

  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result,
                       char* scratch) const override {
    if (offset > content_.size()) return leveldb::Status::Corruption("read beyond the end");
    const absl::string_view part = content_.substr(offset, n);
    *result = leveldb::Slice(part.data(), part.size());
    return leveldb::Status::OK();
  }

 private:
  const absl::string_view content_;
};

leveldb::Options TableOptions() {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = kBlockSize;
  options.paranoid_checks = true;
  return options;
}

absl::StatusOr<IndexTable> ReadEntries(const leveldb::Table& table, const std::string& path) {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  const std::unique_ptr<leveldb::Iterator> it(table.NewIterator(options));
  IndexTable entries;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    entries[it->key().ToString()] = it->value().ToString();
  }
  RETURN_IF_ERROR(FromLeveldb(it->status(), path));
  return entries;
}

}  // namespace

absl::Status WriteIndexTable(FileSystem* file_system, const std::string& path,
                             const IndexTable& table) {
  StringFile file;
  leveldb::TableBuilder builder(TableOptions(), &file);
  for (const auto& [key, value] : table) builder.Add(key, value);
  RETURN_IF_ERROR(FromLeveldb(builder.Finish(), path));
  return WriteFileAtomically(path, file.content(), file_system);
}

absl::StatusOr<IndexTable> ReadIndexTable(FileSystem* file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadBoundedFile(path, kMaxIndexBytes, file_system));
  RETURN_IF_ERROR(CheckFooter(path, content));
  StringSource source(content);
  leveldb::Table* raw = nullptr;
  RETURN_IF_ERROR(
      FromLeveldb(leveldb::Table::Open(TableOptions(), &source, content.size(), &raw), path));
  const std::unique_ptr<leveldb::Table> table(raw);
  return ReadEntries(*table, path);
}

}  // namespace keelson
