// Limits of the memory of single processes, by Linux's control groups.
#ifndef KEELSON_TESTS_STRANGER_MEMORY_GROUPS_H_
#define KEELSON_TESTS_STRANGER_MEMORY_GROUPS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace keelson {

// Groups within that of this process, of version 1 or 2, one for each process that is started
// behind Command(). Removed with the object, by when those processes have ended.
class MemoryGroups {
 public:
  // UNAVAILABLE: this user may not make such groups here, with the reason.
  static absl::StatusOr<std::unique_ptr<MemoryGroups>> Make(int64_t limit_bytes);
  ~MemoryGroups();
  MemoryGroups(const MemoryGroups&) = delete;
  MemoryGroups& operator=(const MemoryGroups&) = delete;

  // Text of a shell that moves itself into a group of its own, or exits with 1.
  std::string Command() const;

  // The most that the process's group has held, the kernel's memory on its behalf included; -1: it
  // is not known.
  int64_t PeakBytes(pid_t pid) const;

 private:
  MemoryGroups(std::string folder, bool first_version, int64_t limit_bytes);

  std::string GroupOf(const std::string& pid) const;

  const std::string folder_;
  const bool first_version_;
  const int64_t limit_bytes_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_MEMORY_GROUPS_H_
