// What a task shows of itself when it calls another one.
#ifndef KEELSON_CORE_RPC_CREDENTIALS_H_
#define KEELSON_CORE_RPC_CREDENTIALS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "core/rpc/protocol.h"

namespace keelson {

// The caller's part of a call, sent as metadata. Secrets travel as they are.
struct Claim {
  // "chief", "worker", "evaluator" or "operator" (a person's tool); empty: none.
  std::string role;
  // What --job_token_file holds; empty: none.
  std::string job_token;
  // What --auth_token_file holds; empty: none.
  std::string auth_token;
  // The message protocol that the caller speaks; empty: it shows none.
  std::string protocol = kProtocol;
};

// How the connections to a peer are made, and what each call on them carries.
struct Credentials {
  Claim claim;
  std::shared_ptr<grpc::ChannelCredentials> channel = grpc::InsecureChannelCredentials();
};

// The credentials of a caller in this role that has no secret.
Credentials CredentialsAs(const std::string& role);

// Metadata keys of a claim. gRPC sends each value once per connection and refers to it afterwards.
inline constexpr char kRoleKey[] = "keelson-role";
inline constexpr char kJobTokenKey[] = "keelson-job-token";
inline constexpr char kAuthorizationKey[] = "authorization";  // "Bearer TOKEN"

// Adds what `claim` has to a call that has not started.
void AddClaim(const Claim& claim, grpc::ClientContext* context);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_CREDENTIALS_H_
