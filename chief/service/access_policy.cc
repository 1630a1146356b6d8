#include "chief/service/access_policy.h"

#include "absl/strings/strip.h"
#include "core/base/auth_token.h"

namespace keelson {

absl::Status AccessPolicy::CheckSetMode(const Caller& caller) const {
  return token_.empty() ? absl::OkStatus() : CheckToken(caller);
}

absl::Status AccessPolicy::CheckEndTraining(const Caller& caller, bool names_member) const {
  if (names_member) return absl::OkStatus();
  if (token_.empty()) {
    return absl::PermissionDeniedError(
        "ending the training needs --auth_token_file: this chief runs without one");
  }
  return CheckToken(caller);
}

absl::Status AccessPolicy::CheckToken(const Caller& caller) const {
  if (caller.authorization.empty()) {
    return absl::PermissionDeniedError(
        "the job's token is needed (--auth_token_file), the call has none");
  }
  absl::string_view token = caller.authorization;
  if (!absl::ConsumePrefix(&token, "Bearer ") || !SameToken(token, token_)) {
    return absl::PermissionDeniedError("the call's token is not that of the job");
  }
  return absl::OkStatus();
}

}  // namespace keelson
