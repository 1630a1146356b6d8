#include "core/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace keelson {

uint32_t Crc32cExtend(uint32_t crc, absl::string_view data) {
  constexpr size_t kMaxCall = size_t{1} << 30;  // the library's length is an int
  crc = ~crc;
  while (!data.empty()) {
    const size_t n = std::min(data.size(), kMaxCall);
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    crc = crc32_iscsi(bytes, static_cast<int>(n), crc);
    data.remove_prefix(n);
  }
  return ~crc;
}

}  // namespace keelson
