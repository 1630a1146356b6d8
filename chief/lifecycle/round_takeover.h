// What becomes of the rounds of synchronous mode that a predecessor had begun to commit.
#ifndef KEELSON_CHIEF_LIFECYCLE_ROUND_TAKEOVER_H_
#define KEELSON_CHIEF_LIFECYCLE_ROUND_TAKEOVER_H_

#include <vector>

#include "chief/coordination/coordinator.h"
#include "chief/servers/adoption.h"
#include "chief/servers/server_group.h"
#include "core/base/stop_signal.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Commits the newest round that one of the servers has committed at those that have not: with the
// number of pushes that it had there. A server that lacks them is told that it has lost the round.
// One that does not answer is restored or told later. `servers[s]` answered with `shards[s]`, and
// only those are called whose shards the adoption keeps. Tells the coordinator and the group of
// that round. Before TrainingStart::Resume. Returns early when `stop` is raised.
void TakeRoundsOver(const Adoption& adoption, const std::vector<v1::ShardStatus>& shards,
                    Coordinator* coordinator, ServerGroup* servers, const StopSignal& stop);

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_ROUND_TAKEOVER_H_
