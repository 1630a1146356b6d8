#include "core/base/kernel_file.h"

#include <fstream>
#include <sstream>

namespace keelson {

std::string ReadKernelFile(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  // Where reading fails, this keeps the stream's exception to itself.
  text << file.rdbuf();
  return text.str();
}

}  // namespace keelson
