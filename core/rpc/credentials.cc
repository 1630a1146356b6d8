#include "core/rpc/credentials.h"

#include "absl/strings/str_cat.h"

namespace keelson {

Credentials CredentialsAs(const std::string& role) {
  Credentials credentials;
  credentials.claim.role = role;
  return credentials;
}

void AddClaim(const Claim& claim, grpc::ClientContext* context) {
  if (!claim.protocol.empty()) context->AddMetadata(kProtocolKey, claim.protocol);
  if (!claim.role.empty()) context->AddMetadata(kRoleKey, claim.role);
  if (!claim.job_token.empty()) context->AddMetadata(kJobTokenKey, claim.job_token);
  if (!claim.auth_token.empty()) {
    context->AddMetadata(kAuthorizationKey, absl::StrCat("Bearer ", claim.auth_token));
  }
}

}  // namespace keelson
