#include "core/checkpoint/ordered_code.h"

namespace keelson {
namespace {

constexpr int kMaxSignedBytes = 10;

// Bytes of the signed code of `value`: n bytes hold -2^(7n-1) … 2^(7n-1)-1.
int SignedCodeBytes(int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  int n = 1;
  while (n < kMaxSignedBytes && (magnitude >> (7 * n - 1)) != 0) ++n;
  return n;
}

// The n leading one bits that are xored into an n-byte code.
void XorHeader(int n, char* code) {
  const uint32_t header = (0xffffu << (16 - n)) & 0xffffu;
  code[0] = static_cast<char>(static_cast<uint8_t>(code[0]) ^ (header >> 8));
  if (n > 1) code[1] = static_cast<char>(static_cast<uint8_t>(code[1]) ^ (header & 0xff));
}

}  // namespace

void AppendOrderedUnsigned(uint64_t value, std::string* out) {
  int n = 0;
  while (n < 8 && (value >> (8 * n)) != 0) ++n;
  out->push_back(static_cast<char>(n));
  for (int i = n - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendOrderedSigned(int64_t value, std::string* out) {
  const int n = SignedCodeBytes(value);
  char code[kMaxSignedBytes];
  for (int i = 0; i < n; ++i) {
    const int byte = n - 1 - i;  // from the least significant
    code[i] = static_cast<char>(byte < 8 ? value >> (8 * byte) : (value < 0 ? -1 : 0));
  }
  XorHeader(n, code);
  out->append(code, n);
}

void AppendOrderedString(absl::string_view value, std::string* out) {
  for (const char c : value) {
    out->push_back(c);
    if (c == '\x00') out->push_back('\xff');
    if (c == '\xff') out->push_back('\x00');
  }
  out->push_back('\x00');
  out->push_back('\x01');
}

std::string EncodeSliceKey(absl::string_view name, const TensorSliceSpec& slice) {
  std::string key;
  AppendOrderedUnsigned(0, &key);
  AppendOrderedString(name, &key);
  AppendOrderedUnsigned(slice.extents.size(), &key);
  for (const TensorSliceSpec::Extent& extent : slice.extents) {
    AppendOrderedSigned(extent.start, &key);
    AppendOrderedSigned(extent.length, &key);
  }
  return key;
}

}  // namespace keelson
