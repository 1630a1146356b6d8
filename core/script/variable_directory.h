// The directory at the begin of the memory that a script shares with a program: where each
// variable's arrays lie (docs/agent-protocol.md).
#ifndef KEELSON_CORE_SCRIPT_VARIABLE_DIRECTORY_H_
#define KEELSON_CORE_SCRIPT_VARIABLE_DIRECTORY_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"
#include "core/tensor/variable.h"

namespace keelson {

// Arrays begin at a multiple of this: a cache line, and the widest vector.
inline constexpr size_t kArrayAlignment = 64;

inline size_t AlignedArray(size_t at) {
  return (at + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
}

// Where a variable's arrays begin, from the memory's begin on; 0: it has no such array.
struct ArrayPlaces {
  size_t values = 0, gradients = 0;
};

size_t VariableDirectoryBytes(absl::Span<const VariableSpec> variables);

// `places`: of each of the variables.
std::string VariableDirectory(absl::Span<const VariableSpec> variables,
                              absl::Span<const ArrayPlaces> places);

}  // namespace keelson

#endif  // KEELSON_CORE_SCRIPT_VARIABLE_DIRECTORY_H_
