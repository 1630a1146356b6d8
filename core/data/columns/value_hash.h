// The ids of values that are text, such as the strings of a column of a file.
#ifndef KEELSON_CORE_DATA_COLUMNS_VALUE_HASH_H_
#define KEELSON_CORE_DATA_COLUMNS_VALUE_HASH_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "core/table/row_id.h"

namespace keelson {

// What tells equal values of different fields apart: the hash of the field's name.
uint64_t FieldSalt(absl::string_view field);

// A value's id among all of 64 bits. Models are trained and served by it, in programs of any
// version, so it never changes: h is MixId (core/table/row_id.h) of the number of bytes and the
// salt, then for each 8 bytes, the last ones filled up with zeros, read as a little-endian number
// w: MixId(w, h). An empty value has an id like any other. Under one salt no two values of one
// length up to 8 bytes have the same id.
inline uint64_t HashValue(absl::string_view value, uint64_t salt) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");
  uint64_t hash = MixId(value.size(), salt);
  const char* bytes = value.data();
  size_t left = value.size();
  uint64_t word = 0;
  for (; left >= sizeof(word); left -= sizeof(word), bytes += sizeof(word)) {
    std::memcpy(&word, bytes, sizeof(word));
    hash = MixId(word, hash);
  }
  if (left == 0) return hash;
  word = 0;
  std::memcpy(&word, bytes, left);
  return MixId(word, hash);
}

// HashValue under one salt, for many values: most are short or missing, and of these the size's
// part is computed once.
class ValueHash {
 public:
  explicit ValueHash(uint64_t salt)
      : salt_(salt), empty_(MixId(0, salt)), one_word_(MixId(sizeof(uint64_t), salt)) {}

  uint64_t Of(absl::string_view value) const {
    uint64_t word = 0;
    if (value.size() == sizeof(word)) {
      std::memcpy(&word, value.data(), sizeof(word));
      return MixId(word, one_word_);
    }
    return value.empty() ? empty_ : HashValue(value, salt_);
  }

 private:
  uint64_t salt_;
  uint64_t empty_;
  uint64_t one_word_;
};

// The id that a feature of `num_ids` ids (FeatureSpec::num_ids) takes for a hash: where any id will
// do, which 0 says, the hash itself, otherwise one of that many buckets, which are equally likely.
constexpr uint64_t IdOfHash(uint64_t hash, int64_t num_ids) {
  if (num_ids == 0) return hash;
  __extension__ using Product = unsigned __int128;
  return static_cast<uint64_t>(Product{hash} * static_cast<uint64_t>(num_ids) >> 64);
}

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNS_VALUE_HASH_H_
