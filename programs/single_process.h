// A job without a cluster: all four roles in this process, over in-process clients.
#ifndef KEELSON_PROGRAMS_SINGLE_PROCESS_H_
#define KEELSON_PROGRAMS_SINGLE_PROCESS_H_

#include "absl/status/status.h"
#include "chief/lifecycle/chief_role.h"
#include "core/startup/role_program.h"
#include "dashboard/dashboard_flags.h"
#include "worker/worker_role.h"

namespace keelson {

// Runs a job with one shard, one worker and one evaluator, which serves the dashboard if a port is
// given; of `dashboard` only port and address are used. With the same seed and number of compute
// threads, two runs have bit-identical losses. INVALID_ARGUMENT: an --auth_token_file, since no
// client calls such a job; otherwise as Chief::Run and its companions.
absl::Status RunSingleProcess(const RoleContext& context, const ChiefFlags& chief_flags,
                              const WorkerFlags& worker_flags, const DashboardFlags& dashboard,
                              StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_PROGRAMS_SINGLE_PROCESS_H_
