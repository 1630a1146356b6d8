#include "core/checkpoint/index_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/base/varint.h"
#include "core/checkpoint/table_block.h"
#include "leveldb/env.h"
#include "leveldb/options.h"
#include "leveldb/table_builder.h"

namespace keelson {
namespace {

constexpr size_t kBlockSize = 262144;
// Two block handles, padded to 40 bytes, and the magic number.
constexpr size_t kFooterBytes = 48;
constexpr size_t kHandleBytes = 40;
constexpr char kMagic[] = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 30;
// Entries in memory may take 16 times as much as the file, in which keys have common prefixes and
// blocks are compressed, and 1 MiB in any case.
constexpr uint64_t kMaxExpansion = 16;
constexpr uint64_t kMinEntryBytes = uint64_t{1} << 20;

// The bytes [offset, offset + size) of a file, before a block's trailer.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

absl::Status DamagedIndex(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": damaged index: ", what));
}

bool ConsumeHandle(absl::string_view* in, BlockHandle* handle) {
  return ConsumeVarint(in, &handle->offset) && ConsumeVarint(in, &handle->size);
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

// Reads the entries of a table. In the file its blocks follow one another: those with the entries,
// the metaindex, which nothing of a table without filters needs, and the index of the others.
class TableReader {
 public:
  TableReader(const std::string& path, absl::string_view content)
      : path_(path),
        content_(content),
        budget_(std::max(content.size() * kMaxExpansion, kMinEntryBytes)) {}

  absl::StatusOr<IndexTable> Run() && {
    BlockHandle metaindex, index;
    RETURN_IF_ERROR(ReadFooter(&metaindex, &index));
    ASSIGN_OR_RETURN(const std::vector<BlockHandle> blocks, ReadHandles(index));
    uint64_t end = 0;
    for (const BlockHandle& block : blocks) {
      RETURN_IF_ERROR(CheckPlace("a block of entries", block, metaindex.offset, &end));
    }
    RETURN_IF_ERROR(ReadBlock("the metaindex", metaindex).status());
    for (const BlockHandle& block : blocks) RETURN_IF_ERROR(ReadEntries(block));
    return std::move(entries_);
  }

 private:
  // The footer has no checksum.
  absl::Status ReadFooter(BlockHandle* metaindex, BlockHandle* index) const {
    if (content_.size() < kFooterBytes) return DamagedIndex(path_, "too short for a footer");
    const uint64_t blocks_end = content_.size() - kFooterBytes;
    const absl::string_view footer = content_.substr(blocks_end);
    if (std::memcmp(footer.data() + kHandleBytes, kMagic, kFooterBytes - kHandleBytes) != 0) {
      return DamagedIndex(path_, "bad magic number");
    }
    absl::string_view handles = footer.substr(0, kHandleBytes);
    if (!ConsumeHandle(&handles, metaindex) || !ConsumeHandle(&handles, index) ||
        EncodeHandles(*metaindex, *index) != footer.substr(0, kHandleBytes)) {
      return DamagedIndex(path_, "bad block handle in the footer");
    }
    uint64_t end = 0;
    RETURN_IF_ERROR(CheckPlace("the metaindex", *metaindex, blocks_end, &end));
    return CheckPlace("the index of blocks", *index, blocks_end, &end);
  }

  // Checks that a block and its trailer lie within the bytes [*begin, end), and moves *begin behind
  // them.
  absl::Status CheckPlace(absl::string_view what, const BlockHandle& block, uint64_t end,
                          uint64_t* begin) const {
    if (block.offset < *begin || block.offset > end || block.size > end - block.offset ||
        kTableBlockTrailerBytes > end - block.offset - block.size) {
      return DamagedIndex(
          path_, absl::StrCat(what, ": expected it in bytes [", *begin, ", ", end, "), found ",
                              block.size, " bytes from ", block.offset));
    }
    *begin = block.offset + block.size + kTableBlockTrailerBytes;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadBlock(absl::string_view what, const BlockHandle& block) const {
    absl::StatusOr<std::string> content =
        TableBlockContent(content_.substr(block.offset, block.size + kTableBlockTrailerBytes));
    if (content.ok()) return content;
    return DamagedBlock(what, block, content.status());
  }

  absl::StatusOr<std::vector<BlockHandle>> ReadHandles(const BlockHandle& index) const {
    constexpr absl::string_view kName = "the index of blocks";
    ASSIGN_OR_RETURN(const std::string content, ReadBlock(kName, index));
    std::vector<BlockHandle> handles;
    const absl::Status status =
        ForEachTableEntry(content, [&](absl::string_view, absl::string_view value) {
          if (!ConsumeHandle(&value, &handles.emplace_back()) || !value.empty()) {
            return absl::DataLossError("bad block handle");
          }
          return absl::OkStatus();
        });
    if (!status.ok()) return DamagedBlock(kName, index, status);
    return handles;
  }

  absl::Status ReadEntries(const BlockHandle& block) {
    constexpr absl::string_view kName = "a block of entries";
    ASSIGN_OR_RETURN(const std::string content, ReadBlock(kName, block));
    const absl::Status status = ForEachTableEntry(
        content,
        [this](absl::string_view key, absl::string_view value) { return AddEntry(key, value); });
    return status.ok() ? status : DamagedBlock(kName, block, status);
  }

  absl::Status AddEntry(absl::string_view key, absl::string_view value) {
    const uint64_t bytes = sizeof(IndexTable::value_type) + key.size() + value.size();
    if (bytes > budget_) {
      return absl::DataLossError(
          absl::StrCat("entries take more memory than ", kMaxExpansion, " times the file's size"));
    }
    budget_ -= bytes;
    if (!entries_.empty() && entries_.rbegin()->first >= key) {
      return absl::DataLossError(absl::StrCat("key '", absl::CHexEscape(key), "' is out of order"));
    }
    entries_.emplace_hint(entries_.end(), key, value);
    return absl::OkStatus();
  }

  absl::Status DamagedBlock(absl::string_view what, const BlockHandle& block,
                            const absl::Status& status) const {
    return DamagedIndex(path_, absl::StrCat(what, " (", block.size, " bytes from ", block.offset,
                                            "): ", status.message()));
  }

  const std::string& path_;
  const absl::string_view content_;
  uint64_t budget_;
  IndexTable entries_;
};

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

leveldb::Options TableOptions() {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = kBlockSize;
  return options;
}

}  // namespace

absl::Status WriteIndexTable(FileSystem* file_system, const std::string& path,
                             const IndexTable& table) {
  StringFile file;
  leveldb::TableBuilder builder(TableOptions(), &file);
  for (const auto& [key, value] : table) builder.Add(key, value);
  const leveldb::Status finished = builder.Finish();
  if (!finished.ok()) return absl::InternalError(absl::StrCat(path, ": ", finished.ToString()));
  return WriteFileAtomically(path, file.content(), file_system);
}

absl::StatusOr<IndexTable> ReadIndexTable(FileSystem* file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadBoundedFile(path, kMaxIndexBytes, file_system));
  return TableReader(path, content).Run();
}

}  // namespace keelson
