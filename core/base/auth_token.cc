#include "core/base/auth_token.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"

namespace keelson {
namespace {

constexpr size_t kMinBytes = 16;
constexpr size_t kMaxBytes = 4096;

absl::Status Refuse(absl::string_view flag, const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, ": ", what));
}

bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~+/=", c);
}

void WarnWhenOthersCanRead(absl::string_view flag, const std::string& path) {
  struct stat state {};
  // Access by the group is not reported: Kubernetes gives a Secret's files to the pod's group.
  if (stat(path.c_str(), &state) == 0 && (state.st_mode & S_IROTH) != 0) {
    LogWarning(flag, " ", path, ": every user of this machine can read it; chmod o= helps");
  }
}

}  // namespace

absl::StatusOr<std::string> ReadToken(absl::string_view flag, const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Refuse(flag, path, text.status().message());
  const absl::string_view token =
      absl::StripAsciiWhitespace(absl::string_view(*text).substr(0, text->find('\n')));
  if (token.size() < kMinBytes || token.size() > kMaxBytes) {
    return Refuse(flag, path,
                  absl::StrCat("expected a token of ", kMinBytes, " to ", kMaxBytes,
                               " characters in the first line, found ", token.size()));
  }
  if (!std::all_of(token.begin(), token.end(), IsTokenCharacter)) {
    return Refuse(flag, path,
                  "expected a token of letters, digits and -._~+/= in the first line, found "
                  "another character");
  }
  WarnWhenOthersCanRead(flag, path);
  return std::string(token);
}

bool SameToken(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size() || a.empty()) return false;
  // The compiler must not end the loop early.
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace keelson
