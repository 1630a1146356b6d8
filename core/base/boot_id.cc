#include "core/base/boot_id.h"

#include "absl/strings/strip.h"
#include "core/base/kernel_file.h"

namespace keelson {

std::string BootId() {
  return std::string(absl::StripSuffix(ReadKernelFile("/proc/sys/kernel/random/boot_id"), "\n"));
}

}  // namespace keelson
