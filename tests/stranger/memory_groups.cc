#include "tests/stranger/memory_groups.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/kernel_file.h"

namespace keelson {
namespace {

namespace fs = std::filesystem;

// This process's group, by the line of /proc/self/cgroup that begins so: "4:memory:/a", "0::/a".
std::string OwnGroup(absl::string_view key) {
  const std::string text = ReadKernelFile("/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && parts[1] == key) return parts[2];
  }
  return "";
}

}  // namespace

MemoryGroups::MemoryGroups(std::string folder, bool first_version, int64_t limit_bytes)
    : folder_(std::move(folder)), first_version_(first_version), limit_bytes_(limit_bytes) {}

absl::StatusOr<std::unique_ptr<MemoryGroups>> MemoryGroups::Make(int64_t limit_bytes) {
  const bool first_version = fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  const std::string own = first_version ? absl::StrCat("/sys/fs/cgroup/memory", OwnGroup("memory"))
                                        : absl::StrCat("/sys/fs/cgroup", OwnGroup(""));
  std::string folder = absl::StrCat(own, "/keelson-test-", getpid());
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  std::unique_ptr<MemoryGroups> groups(
      new MemoryGroups(std::move(folder), first_version, limit_bytes));
  // Version 2 gives no controllers to a group that its parent has not given them to.
  if (!first_version) std::ofstream(groups->folder_ + "/cgroup.subtree_control") << "+memory";
  const std::string trial = groups->GroupOf("trial");
  fs::create_directory(trial, error);
  const std::string limit = trial + (first_version ? "/memory.limit_in_bytes" : "/memory.max");
  std::ofstream file(limit);
  file << limit_bytes;
  file.close();
  if (!file) {
    return absl::UnavailableError(absl::StrCat(limit, ": cannot be written"));
  }
  return groups;
}

MemoryGroups::~MemoryGroups() {
  std::error_code ignored;
  std::vector<fs::path> groups;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
    if (entry.is_directory(ignored)) groups.push_back(entry.path());
  }
  groups.push_back(folder_);
  // Their files belong to them: only the folders can be removed.
  for (const fs::path& group : groups) rmdir(group.c_str());
}

std::string MemoryGroups::GroupOf(const std::string& pid) const {
  return absl::StrCat(folder_, "/", pid);
}

std::string MemoryGroups::Command() const {
  const std::string group = GroupOf("$$");
  const char* const limit = first_version_ ? "memory.limit_in_bytes" : "memory.max";
  return absl::StrCat("mkdir \"", group, "\" && echo ", limit_bytes_, " > \"", group, "/", limit,
                      "\" && echo $$ > \"", group, "/cgroup.procs\" || exit 1");
}

int64_t MemoryGroups::PeakBytes(pid_t pid) const {
  const char* const peak = first_version_ ? "/memory.max_usage_in_bytes" : "/memory.peak";
  int64_t bytes = -1;
  const std::string text = ReadKernelFile(GroupOf(absl::StrCat(pid)) + peak);
  return absl::SimpleAtoi(text, &bytes) ? bytes : -1;
}

}  // namespace keelson
