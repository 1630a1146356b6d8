#include "core/base/available_cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/kernel_file.h"

namespace keelson {
namespace {

int CoresOfAffinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// `text` is quota and period in microseconds.
std::optional<int> CoresOfQuota(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ' ', absl::SkipEmpty());
  int64_t quota = 0, period = 0;
  if (fields.size() != 2 || !absl::SimpleAtoi(fields[0], &quota) ||
      !absl::SimpleAtoi(fields[1], &period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

}  // namespace

std::optional<int> CoresOfControlGroup(const std::string& directory) {
  if (const auto cores = CoresOfQuota(ReadKernelFile(directory + "/cpu.max"))) return cores;
  // The controller's directory, with or without the link that distributions add.
  for (const char* controller : {"/cpu", "/cpu,cpuacct"}) {
    const std::string prefix = absl::StrCat(directory, controller, "/cpu.cfs_");
    const std::string quota = ReadKernelFile(prefix + "quota_us");
    if (!quota.empty()) {
      return CoresOfQuota(absl::StrCat(quota, " ", ReadKernelFile(prefix + "period_us")));
    }
  }
  return std::nullopt;
}

int AvailableCores() {
  const int cores = CoresOfAffinity();
  return std::min(cores, CoresOfControlGroup("/sys/fs/cgroup").value_or(cores));
}

}  // namespace keelson
