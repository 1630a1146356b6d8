// The messages of a scenario.
#ifndef KEELSON_BENCH_MESSAGE_PLAN_H_
#define KEELSON_BENCH_MESSAGE_PLAN_H_

#include "bench/load_client.h"
#include "core/client/plan/transfer_plan.h"

namespace keelson::bench {

// Per shard, as a ParameterClient groups them; for "flat", of one message's blocks each.
ShardPlans PlanMessages(const LoadPlan& plan);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_MESSAGE_PLAN_H_
