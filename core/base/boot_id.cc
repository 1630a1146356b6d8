#include "core/base/boot_id.h"

#include <fstream>

namespace keelson {

std::string BootId() {
  // A file of /proc says that it has no bytes, so it is read as a stream.
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

}  // namespace keelson
