// The number of cores that this process may use.
#ifndef KEELSON_CORE_BASE_AVAILABLE_CORES_H_
#define KEELSON_CORE_BASE_AVAILABLE_CORES_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace keelson {

// The cores of the process's affinity mask, or fewer where the control group limits its CPU time,
// as a container with a CPU limit does; at least 1. A quota of a part of a core counts as one.
int AvailableCores();

// The limit that a control group's `cpu.max` file states ("200000 100000": quota and period in
// microseconds, so 2 cores; "max 100000": none). Nothing for any other text.
// Format: the kernel's Documentation/admin-guide/cgroup-v2.rst.
std::optional<int> CoresOfCpuMax(absl::string_view text);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_AVAILABLE_CORES_H_
