#include "core/checkpoint/table_block.h"

#include <snappy.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/status_macros.h"
#include "core/base/varint.h"

namespace keelson {
namespace {

constexpr uint8_t kUncompressed = 0;
constexpr uint8_t kSnappy = 1;
// The shortest element of snappy's format that stands for 64 bytes, the most, has 3 bytes.
constexpr size_t kMaxSnappyRatio = 22;
constexpr size_t kWordBytes = sizeof(uint32_t);

uint32_t ReadWord(absl::string_view bytes) {
  uint32_t word;
  std::memcpy(&word, bytes.data(), sizeof(word));
  return word;
}

absl::StatusOr<std::string> Uncompress(absl::string_view compressed) {
  size_t size;
  if (!snappy::GetUncompressedLength(compressed.data(), compressed.size(), &size)) {
    return absl::DataLossError("compressed by snappy, but without its length");
  }
  if (size > kMaxSnappyRatio * compressed.size()) {
    return absl::DataLossError(absl::StrCat("expected at most ",
                                            kMaxSnappyRatio * compressed.size(),
                                            " bytes when uncompressed, found ", size));
  }
  std::string content(size, '\0');
  if (!snappy::RawUncompress(compressed.data(), compressed.size(), content.data())) {
    return absl::DataLossError("not compressed by snappy, as its type says");
  }
  return content;
}

// Takes the next entry off the front of `in`; `key` holds the key before. False: there is none.
bool ConsumeEntry(absl::string_view* in, std::string* key, absl::string_view* value) {
  uint64_t shared, unshared, value_size;
  if (!ConsumeVarint(in, &shared) || !ConsumeVarint(in, &unshared) ||
      !ConsumeVarint(in, &value_size) || shared > key->size() || unshared > in->size() ||
      value_size > in->size() - unshared) {
    return false;
  }
  key->resize(shared);
  key->append(in->data(), unshared);
  *value = in->substr(unshared, value_size);
  in->remove_prefix(unshared + value_size);
  return true;
}

}  // namespace

absl::StatusOr<std::string> TableBlockContent(absl::string_view block) {
  if (block.size() < kTableBlockTrailerBytes) return absl::DataLossError("too short for a block");
  const size_t size = block.size() - kTableBlockTrailerBytes;
  if (MaskCrc32c(Crc32c(block.substr(0, size + 1))) != ReadWord(block.substr(size + 1))) {
    return absl::DataLossError("checksum mismatch");
  }
  const uint8_t type = static_cast<uint8_t>(block[size]);
  if (type == kUncompressed) return std::string(block.substr(0, size));
  if (type == kSnappy) return Uncompress(block.substr(0, size));
  return absl::DataLossError(
      absl::StrCat("expected compression type 0 (none) or 1 (snappy), found ", type));
}

absl::Status ForEachTableEntry(
    absl::string_view content,
    absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)> visit) {
  // After the entries: the positions from which keys are complete, and how many those are.
  const uint64_t restarts =
      content.size() < kWordBytes ? 0 : ReadWord(content.substr(content.size() - kWordBytes));
  const uint64_t tail = (restarts + 1) * kWordBytes;
  if (tail > content.size()) {
    return absl::DataLossError(
        absl::StrCat("expected ", restarts, " restart positions in ", content.size(), " bytes"));
  }
  absl::string_view entries = content.substr(0, content.size() - tail);
  const size_t end = entries.size();
  std::string key;
  while (!entries.empty()) {
    const size_t begin = end - entries.size();
    absl::string_view value;
    if (!ConsumeEntry(&entries, &key, &value)) {
      return absl::DataLossError(
          absl::StrCat("no entry in bytes [", begin, ", ", end, ") of the block"));
    }
    RETURN_IF_ERROR(visit(key, value));
  }
  return absl::OkStatus();
}

}  // namespace keelson
