// The control calls of one of the shards that a process hosts.
#ifndef KEELSON_CORE_CLIENT_SERVICES_SHARD_CONTROL_H_
#define KEELSON_CORE_CLIENT_SERVICES_SHARD_CONTROL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "core/client/services/parameter_control.h"

namespace keelson {

// Names the shard in the header of each request (RequestHeader.shard) and passes the call on.
// FindChief, which every shard answers alike, names none. Thread-safe.
class ShardControl : public ParameterControl {
 public:
  // `host` may be shared by the controls of several shards; CancelFileCalls and GiveUpCalls end
  // those of all.
  ShardControl(uint32_t shard, std::shared_ptr<ParameterControl> host)
      : named_(shard + 1), host_(std::move(host)) {}

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
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;
  void CancelFileCalls() override { host_->CancelFileCalls(); }
  void GiveUpCalls() override { host_->GiveUpCalls(); }

 private:
  template <typename Request>
  Request Named(const Request& request) const;

  const uint32_t named_;
  const std::shared_ptr<ParameterControl> host_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_SHARD_CONTROL_H_
