// Executes the bulk calls on a shard. A message is checked as a whole before anything is applied.
#ifndef KEELSON_PS_SERVER_SERVICE_BULK_CALLS_H_
#define KEELSON_PS_SERVER_SERVICE_BULK_CALLS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/task.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"
#include "ps_server/units/shard_store.h"
#include "ps_server/units/value_payload.h"

namespace keelson {

// Adds the requested blocks except those whose version the caller has (a version ahead of the
// block's belongs to another store), and the requested rows, whose ids follow at `payload`.
// INVALID_ARGUMENT: no such block, a block is listed twice, not one known version per block, a
// format that values do not have, sections that ReadSections refuses, a negative step, or another
// payload. ABORTED: MembershipOver. OUT_OF_RANGE: the round of the step before
// is not committed.
absl::Status ServePull(ShardStore* store, const BulkRequest& request, ByteCursor payload,
                       BulkResponse* response, ValuePayload* values);

struct PushOptions {
  bool reject_non_finite = false;
  // Divide the learning rate by 1 + staleness.
  bool scale_learning_rate = false;
};

// Applies the gradients that follow at `payload`, or adds them to their round (`attempt` not 0). A
// kPushPull also adds all blocks as they are after it, and the rows that are asked for.
// INVALID_ARGUMENT, nothing applied: Pull's, a payload that is not that of the blocks and rows, a
// gradient that CheckGradient refuses, a negative step; for a round: values are asked for, too, the
// round is negative, or the weight is not a positive number. A `pulled_shard_step` ahead of the
// shard's is ignored: the shard may have been restored since. ABORTED: MembershipOver.
// FAILED_PRECONDITION: the round has been committed, or a newer round or attempt has begun;
// gradients that were added before this was noticed belong to a sum that is dropped.
absl::Status ServePush(ShardStore* store, BulkMethod method, const BulkRequest& request,
                       const PushOptions& options, ByteCursor payload, BulkResponse* response,
                       ValuePayload* values);

// INVALID_ARGUMENT: the request names no task.
absl::StatusOr<Task> CallerOf(const BulkRequest& request);
// ABORTED: "membership of worker-1 is over: its calls are refused".
absl::Status MembershipOver(const BulkRequest& request);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_BULK_CALLS_H_
