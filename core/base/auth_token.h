// The secrets that authorize a caller to take part in a job, or to change it.
#ifndef KEELSON_CORE_BASE_AUTH_TOKEN_H_
#define KEELSON_CORE_BASE_AUTH_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

// The first line of the file that `flag` ("--auth_token_file") names, without white space at its
// ends: 16 to 4096 letters, digits and characters of "-._~+/=", what HTTP's "Authorization: Bearer"
// takes. Warns in the log when other users can read the file.
//
// INVALID_ARGUMENT: the file cannot be read, or has another first line. The token itself is in no
// message.
absl::StatusOr<std::string> ReadToken(absl::string_view flag, const std::string& path);

// Compares in constant time, so that a token cannot be guessed byte by byte; only its length can be
// measured. Empty tokens are never the same.
bool SameToken(absl::string_view a, absl::string_view b);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_AUTH_TOKEN_H_
