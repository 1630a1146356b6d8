// A chief that has no configuration: it waits for that of a script, and tells scripts when it gives
// up.
#ifndef KEELSON_CHIEF_LIFECYCLE_PROPOSED_JOB_H_
#define KEELSON_CHIEF_LIFECYCLE_PROPOSED_JOB_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/proposal/job_proposals.h"
#include "core/base/stop_signal.h"
#include "core/startup/role_program.h"

namespace keelson {

// How long the scripts of a job that is done may take to say that they want more of it.
inline constexpr absl::Duration kPatienceWhenDone = absl::Seconds(30);

// Serves proposals on `listen_address` until one is complete; then nobody listens there. Where the
// model directory says that its job is done, and no script comes within `patience`, returns that
// job, so that those who missed its end learn of it. `auth_token`: as SecretsOf. INVALID_ARGUMENT:
// no model directory. CANCELLED: stopped. Errors of serving, of the job file.
absl::StatusOr<ProposedJob> AwaitProposedJob(const RoleContext& context,
                                             const std::string& listen_address,
                                             const std::string& auth_token, StopSignal* stop,
                                             absl::Duration patience = kPatienceWhenDone);

// How long scripts may take to hear of it.
inline constexpr absl::Duration kLongestRefusal = absl::Seconds(5);

// Serves on `listen_address` the reason why the chief has given up, until so many scripts have
// heard it, or for `patience`: those that have proposed, or are about to, and are no members that
// could be told. Nobody listens there before. Errors of serving are logged.
void TellScripts(const RoleContext& context, const std::string& listen_address,
                 const std::string& auth_token, const absl::Status& failure, int scripts,
                 absl::Duration patience = kLongestRefusal);

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_PROPOSED_JOB_H_
