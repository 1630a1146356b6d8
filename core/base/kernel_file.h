// Files that the kernel makes up when they are read.
#ifndef KEELSON_CORE_BASE_KERNEL_FILE_H_
#define KEELSON_CORE_BASE_KERNEL_FILE_H_

#include <string>

namespace keelson {

// The text of a file of /proc or /sys, which claims to have no bytes, so that ReadFile finds none.
// Empty: it cannot be read.
std::string ReadKernelFile(const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_KERNEL_FILE_H_
