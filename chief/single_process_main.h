// A job without a cluster: all four roles in this process, over in-process clients.
#ifndef KEELSON_CHIEF_SINGLE_PROCESS_MAIN_H_
#define KEELSON_CHIEF_SINGLE_PROCESS_MAIN_H_

#include "absl/status/status.h"
#include "chief/chief_role.h"
#include "core/startup/role_program.h"
#include "worker/worker_role.h"

namespace keelson {

// One shard, one worker, one evaluator. With the same seed and number of compute threads, two runs
// have bit-identical losses.
absl::Status RunSingleProcess(const RoleContext& context, const ChiefFlags& chief_flags,
                              const WorkerFlags& worker_flags, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_CHIEF_SINGLE_PROCESS_MAIN_H_
