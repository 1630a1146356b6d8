#include "core/data/columns/value_hash.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "core/base/random.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

uint64_t Word(const char* bytes, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

}  // namespace

uint64_t FieldSalt(absl::string_view field) { return StableHash(field); }

uint64_t HashValue(absl::string_view value, uint64_t salt) {
  uint64_t hash = MixId(value.size(), salt);
  const char* bytes = value.data();
  size_t left = value.size();
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
    hash = MixId(Word(bytes, sizeof(uint64_t)), hash);
  }
  return left == 0 ? hash : MixId(Word(bytes, left), hash);
}

}  // namespace keelson
