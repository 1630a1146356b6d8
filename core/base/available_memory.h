// The memory that this process may use.
#ifndef KEELSON_CORE_BASE_AVAILABLE_MEMORY_H_
#define KEELSON_CORE_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace keelson {

// The machine's memory in bytes, or less where the control group limits it, as a container with a
// memory limit does. What other processes use is not subtracted.
int64_t AvailableMemory();

// The limit that a control group's `memory.max` (version 1: `memory.limit_in_bytes`) states, in
// bytes ("536870912\n"; "max": none). Nothing for any other text. Format: the kernel's
// Documentation/admin-guide/cgroup-v2.rst.
std::optional<int64_t> BytesOfMemoryMax(absl::string_view text);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_AVAILABLE_MEMORY_H_
