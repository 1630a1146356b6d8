// The uniform initial values of a row as SIMD code chosen at run time for the processor. Internal
// to initial_rows.cc.
#ifndef KEELSON_CORE_TABLE_UNIFORM_ROW_H_
#define KEELSON_CORE_TABLE_UNIFORM_ROW_H_

#include <cstdint>

#include "absl/types/span.h"

namespace keelson {

// Element e becomes low + range * UniformFloat(word e % 4 of Philox(key, stream, e / 4)). The bits
// do not depend on the processor.
void FillUniform(uint64_t key, uint64_t stream, float low, float range, absl::Span<float> out);

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_UNIFORM_ROW_H_
