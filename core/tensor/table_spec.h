// Describes an embedding table: rows of numbers by id, of which any number may exist.
#ifndef KEELSON_CORE_TENSOR_TABLE_SPEC_H_
#define KEELSON_CORE_TENSOR_TABLE_SPEC_H_

#include <cstdint>
#include <string>

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
};

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_TABLE_SPEC_H_
