// Decides which callers may change the job: members, and callers with the job's token.
#ifndef KEELSON_CHIEF_SERVICE_ACCESS_POLICY_H_
#define KEELSON_CHIEF_SERVICE_ACCESS_POLICY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace keelson {

// The caller of an RPC, as far as the transport identifies it.
struct Caller {
  // The call's metadata "authorization"; empty: none.
  std::string authorization;
};

// Immutable and thread-safe. The errors are PERMISSION_DENIED and say what is missing; none has a
// token in it.
class AccessPolicy {
 public:
  // Empty: the job has no token.
  explicit AccessPolicy(std::string token = "") : token_(std::move(token)) {}

  // Allows every caller if the job has no token.
  absl::Status CheckSetMode(const Caller& caller) const;
  // `names_member`: the request names the member that makes it; the coordinator checks that it is
  // one. If the job has no token, only such requests are allowed.
  absl::Status CheckEndTraining(const Caller& caller, bool names_member) const;

 private:
  absl::Status CheckToken(const Caller& caller) const;

  const std::string token_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVICE_ACCESS_POLICY_H_
