#include "core/data/columns/value_hash.h"

#include "core/base/random.h"

namespace keelson {

uint64_t FieldSalt(absl::string_view field) { return StableHash(field); }

}  // namespace keelson
