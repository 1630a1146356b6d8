#include "core/checkpoint/string_tensor.h"

#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/varint.h"

namespace keelson {
namespace {

absl::Status BadLengths(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("string lengths: ", what));
}

template <typename T>
uint32_t ExtendByInteger(uint32_t crc, T value) {
  return Crc32cExtend(crc, {reinterpret_cast<const char*>(&value), sizeof(value)});
}

uint32_t ExtendByLength(uint32_t crc, uint64_t length) {
  if (length > std::numeric_limits<uint32_t>::max()) return ExtendByInteger(crc, length);
  return ExtendByInteger(crc, static_cast<uint32_t>(length));
}

}  // namespace

StringTensorPrefix EncodeStringTensorPrefix(uint64_t string_size) {
  StringTensorPrefix prefix;
  AppendVarint(string_size, &prefix.bytes);
  prefix.crc = ExtendByLength(0, string_size);
  const uint32_t checksum = MaskCrc32c(prefix.crc);
  prefix.bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  prefix.crc = ExtendByInteger(prefix.crc, checksum);
  return prefix;
}

absl::StatusOr<DecodedStrings> DecodeStringTensor(absl::string_view entry, int64_t count) {
  DecodedStrings decoded;
  if (count == 0 && entry.empty()) return DecodedStrings{{}, 0};
  std::vector<uint64_t> lengths;
  uint32_t crc = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t length;
    if (!ConsumeVarint(&entry, &length)) return BadLengths("the entry ends within them");
    crc = ExtendByLength(crc, length);
    lengths.push_back(length);
  }
  uint32_t checksum;
  if (entry.size() < sizeof(checksum)) return BadLengths("the entry ends before their checksum");
  std::memcpy(&checksum, entry.data(), sizeof(checksum));
  entry.remove_prefix(sizeof(checksum));
  if (checksum != MaskCrc32c(crc)) return BadLengths("checksum mismatch");
  crc = Crc32cExtend(ExtendByInteger(crc, checksum), entry);
  for (const uint64_t length : lengths) {
    if (length > entry.size()) return BadLengths("longer than the entry");
    decoded.strings.emplace_back(entry.substr(0, length));
    entry.remove_prefix(length);
  }
  if (!entry.empty()) return BadLengths("shorter than the entry");
  decoded.crc = crc;
  return decoded;
}

}  // namespace keelson
