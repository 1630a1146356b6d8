// The error of a system call that failed, for what tests are built on.
#ifndef KEELSON_TESTS_SUPPORT_SYSTEM_ERROR_H_
#define KEELSON_TESTS_SUPPORT_SYSTEM_ERROR_H_

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace keelson {

// UNAVAILABLE, with errno's text behind `what`.
inline absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_SYSTEM_ERROR_H_
