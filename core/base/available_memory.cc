#include "core/base/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/kernel_file.h"

namespace keelson {

std::optional<int64_t> BytesOfMemoryMax(absl::string_view text) {
  int64_t bytes = 0;
  if (!absl::SimpleAtoi(text, &bytes) || bytes <= 0) return std::nullopt;
  return bytes;
}

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Returns the least limit of a group and of those above it. Inside a container its own group is the
// highest that is seen.
int64_t LeastLimit(absl::string_view hierarchy, std::string group, absl::string_view file) {
  int64_t least = kNoLimit;
  while (true) {
    const std::string limit = ReadKernelFile(absl::StrCat(hierarchy, group, "/", file));
    least = std::min(least, BytesOfMemoryMax(limit).value_or(kNoLimit));
    if (group.empty()) return least;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

int64_t AvailableMemory() {
  int64_t least = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  // Lines such as "0::/pod1" (version 2) and "4:memory:/pod1" (version 1).
  const std::string groups = ReadKernelFile("/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::string group = parts[2] == "/" ? "" : parts[2];
    if (parts[1].empty()) {
      least = std::min(least, LeastLimit("/sys/fs/cgroup", group, "memory.max"));
    } else if (parts[1] == "memory") {
      least = std::min(least, LeastLimit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace keelson
