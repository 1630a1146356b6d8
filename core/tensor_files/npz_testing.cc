#include "core/tensor_files/npz_testing.h"

#include <zlib.h>

#include <cstddef>

namespace keelson {
namespace {

constexpr int kDeflated = 8;

// Little-endian.
std::string Number(size_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string Deflated(absl::string_view bytes) {
  z_stream zlib = {};
  deflateInit2(&zlib, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&zlib, bytes.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  deflate(&zlib, Z_FINISH);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

}  // namespace

std::string ZipArchive(const std::string& name, absl::string_view member, bool compressed,
                       std::optional<uint32_t> claimed_bytes) {
  const std::string data = compressed ? Deflated(member) : std::string(member);
  const size_t crc =
      crc32(0, reinterpret_cast<const Bytef*>(member.data()), static_cast<uInt>(member.size()));
  // From the version that is needed to the length of the extra field: the same in both headers.
  const std::string common = Number(20, 2) + Number(0, 2) + Number(compressed ? kDeflated : 0, 2) +
                             Number(0, 4) + Number(crc, 4) + Number(data.size(), 4) +
                             Number(claimed_bytes.value_or(member.size()), 4) +
                             Number(name.size(), 2) + Number(0, 2);
  const std::string local = "PK\3\4" + common + name + data;
  const std::string central = "PK\1\2" + Number(20, 2) + common + std::string(14, '\0') + name;
  return local + central + "PK\5\6" + Number(0, 4) + Number(1, 2) + Number(1, 2) +
         Number(central.size(), 4) + Number(local.size(), 4) + Number(0, 2);
}

}  // namespace keelson
