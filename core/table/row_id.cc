#include "core/table/row_id.h"

#include "core/base/random.h"

namespace keelson {

uint64_t TableSalt(absl::string_view table) { return StableHash(table); }

}  // namespace keelson
