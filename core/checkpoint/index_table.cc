#include "core/checkpoint/index_table.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "core/base/random.h"
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

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

absl::Status DamagedIndex(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": damaged index: ", what));
}

absl::Status FromLeveldb(const leveldb::Status& status, const std::string& path) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsNotFound()) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  if (status.IsCorruption()) return DamagedIndex(path, status.ToString());
  return absl::UnavailableError(absl::StrCat(path, ": ", status.ToString()));
}

bool ReadHandle(absl::string_view* in, uint64_t blocks_end, BlockHandle* handle) {
  return ConsumeVarint(in, &handle->offset) && ConsumeVarint(in, &handle->size) &&
         handle->offset <= blocks_end && handle->size <= blocks_end - handle->offset &&
         kTrailerBytes <= blocks_end - handle->offset - handle->size;
}

// As it stands in a footer, padded.
std::string EncodeHandles(const BlockHandle& metaindex, const BlockHandle& index) {
  std::string bytes;
  for (const BlockHandle& handle : {metaindex, index}) {
    AppendVarint(handle.offset, &bytes);
    AppendVarint(handle.size, &bytes);
  }
  bytes.resize(kHandleBytes, '\0');
  return bytes;
}

absl::Status CheckBlock(const RandomAccessFile& file, const BlockHandle& handle) {
  std::string block(handle.size + kTrailerBytes, '\0');
  RETURN_IF_ERROR(file.Read(handle.offset, block.size(), block.data()));
  uint32_t stored;
  std::memcpy(&stored, block.data() + handle.size + 1, sizeof(stored));
  block.resize(handle.size + 1);
  if (MaskCrc32c(Crc32c(block)) == stored) return absl::OkStatus();
  return DamagedIndex(file.path(), "block checksum mismatch");
}

// The footer has no checksum, and leveldb allocates what its handles say. It also never looks at
// the metaindex block of a table without filters.
absl::Status CheckFooter(const RandomAccessFile& file) {
  if (file.size() < kFooterBytes) return DamagedIndex(file.path(), "too short for a footer");
  const uint64_t blocks_end = file.size() - kFooterBytes;
  std::string footer(kFooterBytes, '\0');
  RETURN_IF_ERROR(file.Read(blocks_end, kFooterBytes, footer.data()));
  if (std::memcmp(footer.data() + kHandleBytes, kMagic, kFooterBytes - kHandleBytes) != 0) {
    return DamagedIndex(file.path(), "bad magic number");
  }
  footer.resize(kHandleBytes);
  absl::string_view handles = footer;
  BlockHandle metaindex, index;
  if (!ReadHandle(&handles, blocks_end, &metaindex) || !ReadHandle(&handles, blocks_end, &index) ||
      EncodeHandles(metaindex, index) != footer) {
    return DamagedIndex(file.path(), "bad block handle in the footer");
  }
  RETURN_IF_ERROR(CheckBlock(file, metaindex));
  return CheckBlock(file, index);
}

leveldb::Options TableOptions() {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = kBlockSize;
  options.paranoid_checks = true;
  return options;
}

leveldb::Status BuildTable(leveldb::WritableFile* file, const IndexTable& table) {
  leveldb::TableBuilder builder(TableOptions(), file);
  for (const auto& [key, value] : table) builder.Add(key, value);
  return builder.Finish();
}

leveldb::Status WriteTableFile(const std::string& path, const IndexTable& table) {
  leveldb::WritableFile* raw = nullptr;
  leveldb::Status status = leveldb::Env::Default()->NewWritableFile(path, &raw);
  if (!status.ok()) return status;
  const std::unique_ptr<leveldb::WritableFile> file(raw);
  status = BuildTable(file.get(), table);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  return status;
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

absl::Status WriteIndexTable(const std::string& path, const IndexTable& table) {
  const std::string temporary = absl::StrCat(path, ".tempstate", RandomId());
  absl::Status status = FromLeveldb(WriteTableFile(temporary, table), temporary);
  if (status.ok()) status = RenameFile(temporary, path);
  if (!status.ok()) {
    RemoveFile(temporary).IgnoreError();
    return status;
  }
  return SyncDirectory(DirectoryOf(path));
}

absl::StatusOr<IndexTable> ReadIndexTable(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> checked, RandomAccessFile::Open(path));
  RETURN_IF_ERROR(CheckFooter(*checked));
  leveldb::RandomAccessFile* raw_file = nullptr;
  RETURN_IF_ERROR(FromLeveldb(leveldb::Env::Default()->NewRandomAccessFile(path, &raw_file), path));
  const std::unique_ptr<leveldb::RandomAccessFile> file(raw_file);
  leveldb::Table* raw_table = nullptr;
  RETURN_IF_ERROR(FromLeveldb(
      leveldb::Table::Open(TableOptions(), file.get(), checked->size(), &raw_table), path));
  const std::unique_ptr<leveldb::Table> table(raw_table);
  return ReadEntries(*table, path);
}

}  // namespace keelson
