// The calls by which a shard gets a replica in another process, which survives its host, and by
// which the replica stays equal: with each synchronous round it gets the sums of the pushes before
// the round is committed at either. So whichever process dies, and whenever, the other one has the
// round, or neither has.
//
// The copy as which it begins knows the pushes that it has, so that one that is repeated there when
// the shard has moved counts once. Of a round that is not committed it has nothing: where the shard
// moves before it gets the sums, the step is begun again.
#ifndef KEELSON_PS_SERVER_SERVICE_REPLICA_CALLS_H_
#define KEELSON_PS_SERVER_SERVICE_REPLICA_CALLS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/client/services/parameter_control.h"
#include "ps_server/service/chief_admission.h"
#include "ps_server/service/initialize_calls.h"
#include "ps_server/service/served_shard.h"

namespace keelson {

// Thread-safe. Errors: see ParameterService.
class ReplicaCalls {
 public:
  // Connects to the host of a shard at "host:port".
  using Connect = std::function<std::unique_ptr<ParameterControl>(const std::string& address)>;

  // `connect`: null where this process keeps no replicas. All outlive this.
  ReplicaCalls(Connect connect, ChiefAdmission* chiefs, ServedShard* shard,
               InitializeCalls* initialize)
      : connect_(std::move(connect)), chiefs_(chiefs), shard_(shard), initialize_(initialize) {}

  // ---- At the replica.
  absl::Status ReplicateShard(const v1::ReplicateShardRequest& request);
  absl::Status ReplicateRound(const v1::ReplicateRoundRequest& request);

  // ---- At the shard's host.
  absl::Status ReadShard(const v1::ReadShardRequest& request, ParameterControl::ShardSink sink);
  absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part);

 private:
  // The connection to a host, which is kept. FAILED_PRECONDITION: none can be made.
  absl::StatusOr<std::shared_ptr<ParameterControl>> HostAt(const std::string& address);

  const Connect connect_;
  ChiefAdmission* const chiefs_;
  ServedShard* const shard_;
  InitializeCalls* const initialize_;

  Mutex mu_;
  std::map<std::string, std::shared_ptr<ParameterControl>> hosts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_REPLICA_CALLS_H_
