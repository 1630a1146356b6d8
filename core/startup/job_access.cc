#include "core/startup/job_access.h"

#include "core/base/log.h"

namespace keelson {

Credentials CredentialsOf(const RoleContext& context, Role role, const std::string& auth_token) {
  Credentials credentials;
  credentials.claim = {std::string(RoleName(role)), context.job_token, auth_token};
  return credentials;
}

AccessGuard::Secrets SecretsOf(const RoleContext& context, const std::string& auth_token) {
  if (context.job_token.empty()) {
    LogWarning("no --job_token_file: whoever reaches this port can take part in the job");
  }
  return {context.job_token, auth_token};
}

}  // namespace keelson
