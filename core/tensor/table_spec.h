// Describes an embedding table: rows of numbers by id, of which any number may exist.
#ifndef KEELSON_CORE_TENSOR_TABLE_SPEC_H_
#define KEELSON_CORE_TENSOR_TABLE_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/tensor/variable.h"

namespace keelson {

// A table on the parameter servers. Its keys are all ids of 64 bits; a row is float32 [dim].
struct TableSpec {
  static constexpr int64_t kMostDim = 1024;

  // Unique among tables and variables.
  std::string name;
  int64_t dim = 0;  // 1 to kMostDim
  // Of a row that no push has changed; a function of the job's seed, the name, the id and the
  // element alone.
  Initializer initializer;
  int64_t max_rows = 0;  // 0: no bound
  // A row beyond the bound takes the place of another one; otherwise it is refused.
  bool evict = false;
  // An id that no update has had for so many steps loses its row, or its count; 0: never.
  int64_t expire_after_steps = 0;
  // The update with which an id gets a row, counted from 1; 0: the first one, too.
  int64_t admit_after = 0;
  bool absent_zeros = false;

  // What looking up an id yields that has no row.
  Initializer absent() const { return absent_zeros ? Initializer() : initializer; }
  bool expires() const { return expire_after_steps > 0; }
  bool counts_ids() const { return admit_after > 1; }
};

// The ghosts of a table whose ids are counted: ids with a count, but no row yet, as rows of dim 0
// of a table "<table>/ghosts".
TableSpec GhostsOf(const TableSpec& table);
// "users" of "users" and of "users/ghosts". An id is in the same partition of either.
absl::string_view TableOfRows(absl::string_view name);

// INVALID_ARGUMENT, "max_rows: expected at least 0, found -1": what bounds the rows makes no sense.
absl::Status CheckLimits(const TableSpec& spec);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_TABLE_SPEC_H_
