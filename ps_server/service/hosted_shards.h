// The shards that one process hosts, behind one address.
#ifndef KEELSON_PS_SERVER_SERVICE_HOSTED_SHARDS_H_
#define KEELSON_PS_SERVER_SERVICE_HOSTED_SHARDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"

namespace keelson {

// What serves one shard; both are usually the same object, a ParameterHandler.
struct HostedShard {
  uint32_t shard = 0;  // its number in the placement
  ParameterControl* control = nullptr;
  BulkHandler* bulk = nullptr;
};

// Thread-safe. A call goes to the shard that its header names (RequestHeader.shard), and to the
// first one when it names none. Of a shard that is not here, "shard 3: expected one that this
// process hosts (0, 1), found none": FAILED_PRECONDITION for control calls; UNAVAILABLE for bulk
// calls, because a shard may be on its way here or have gone, and to a worker FAILED_PRECONDITION
// says that its gradient is outdated. INVALID_ARGUMENT: a bulk message whose header is malformed.
class HostedShards : public ParameterControl, public BulkHandler {
 public:
  // At least one, with different numbers; what serves them outlives this. The first is the one that
  // the process hosts by itself.
  explicit HostedShards(std::vector<HostedShard> shards);

  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override;
  bool MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) override;

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  absl::Status PrepareCut(const v1::PrepareCutRequest& request,
                          v1::PrepareCutResponse* response) override;
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override;
  absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                              v1::ShardStatus* response) override;
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override;
  absl::Status ReplicateShard(const v1::ReplicateShardRequest& request,
                              v1::InitializeShardResponse* response) override;
  absl::Status ReplicateRound(const v1::ReplicateRoundRequest& request,
                              v1::ReplicateRoundResponse* response) override;
  absl::Status ReadShard(const v1::ReadShardRequest& request, ShardSink sink) override;
  absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) override;
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;
  // Names no shard: the first address that one of them knows.
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;
  void CancelFileCalls() override;

 private:
  // `named` is a RequestHeader.shard.
  absl::StatusOr<const HostedShard*> Find(uint32_t named) const;

  template <typename Request, typename Response>
  absl::Status Forward(absl::Status (ParameterControl::*call)(const Request&, Response*),
                       const Request& request, Response* response);

  const std::vector<HostedShard> shards_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_HOSTED_SHARDS_H_
