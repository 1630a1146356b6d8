// How the tasks of a job know one another: by the job's token.
#ifndef KEELSON_CORE_STARTUP_JOB_ACCESS_H_
#define KEELSON_CORE_STARTUP_JOB_ACCESS_H_

#include <string>

#include "core/cluster/task.h"
#include "core/rpc/access.h"
#include "core/rpc/credentials.h"
#include "core/startup/role_program.h"

namespace keelson {

// For calls of this process to other tasks, as a task of `role`. `auth_token`: what
// --auth_token_file holds; empty: none.
Credentials CredentialsOf(const RoleContext& context, Role role,
                          const std::string& auth_token = "");

// For those who call this process. Warns in the log that a job without a token lets everyone in.
AccessGuard::Secrets SecretsOf(const RoleContext& context, const std::string& auth_token = "");

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_JOB_ACCESS_H_
