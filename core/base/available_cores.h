// The number of cores that this process may use.
#ifndef KEELSON_CORE_BASE_AVAILABLE_CORES_H_
#define KEELSON_CORE_BASE_AVAILABLE_CORES_H_

#include <optional>
#include <string>

namespace keelson {

// The cores of the process's affinity mask, or fewer where the control group limits its CPU time,
// as a container with a CPU limit does; at least 1. A quota of a part of a core counts as one.
int AvailableCores();

// The limit that the control group states whose file system is mounted at `directory`, as a
// container sees its own at /sys/fs/cgroup: version 2 in `cpu.max` ("200000 100000": quota and
// period in microseconds, so 2 cores; "max 100000": none), version 1 in `cpu.cfs_quota_us` (-1:
// none) and `cpu.cfs_period_us` of the controller `cpu`. Nothing where neither states a limit.
// Formats: the kernel's Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst.
std::optional<int> CoresOfControlGroup(const std::string& directory);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_AVAILABLE_CORES_H_
