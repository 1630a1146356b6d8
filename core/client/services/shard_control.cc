#include "core/client/services/shard_control.h"

namespace keelson {

template <typename Request>
Request ShardControl::Named(const Request& request) const {
  Request named = request;
  named.mutable_header()->set_shard(named_);
  return named;
}

absl::Status ShardControl::Initialize(const v1::InitializeShardRequest& request,
                                      v1::InitializeShardResponse* response) {
  return host_->Initialize(Named(request), response);
}

absl::Status ShardControl::PrepareCut(const v1::PrepareCutRequest& request,
                                      v1::PrepareCutResponse* response) {
  return host_->PrepareCut(Named(request), response);
}

absl::Status ShardControl::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                         v1::WriteSnapshotResponse* response) {
  return host_->WriteSnapshot(Named(request), response);
}

absl::Status ShardControl::StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                                          v1::WriteSnapshotResponse* response) {
  return host_->StreamSnapshot(Named(request), sink, response);
}

absl::Status ShardControl::InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                              v1::InitializeShardResponse* response) {
  v1::InitializeChunk named = first;
  named.mutable_start()->mutable_header()->set_shard(named_);
  return host_->InitializeStreamed(named, next, response);
}

absl::Status ShardControl::ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                          v1::ShardStatus* response) {
  return host_->ChiefHeartbeat(Named(request), response);
}

absl::Status ShardControl::CommitRound(const v1::CommitRoundRequest& request,
                                       v1::CommitRoundResponse* response) {
  return host_->CommitRound(Named(request), response);
}

absl::Status ShardControl::ReplicateShard(const v1::ReplicateShardRequest& request,
                                          v1::InitializeShardResponse* response) {
  v1::ReplicateShardRequest named = request;
  named.mutable_start()->mutable_header()->set_shard(named_);
  return host_->ReplicateShard(named, response);
}

absl::Status ShardControl::ReplicateRound(const v1::ReplicateRoundRequest& request,
                                          v1::ReplicateRoundResponse* response) {
  return host_->ReplicateRound(Named(request), response);
}

absl::Status ShardControl::ReadShard(const v1::ReadShardRequest& request, ShardSink sink) {
  return host_->ReadShard(Named(request), sink);
}

absl::Status ShardControl::ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) {
  return host_->ReadRound(Named(request), part);
}

absl::Status ShardControl::GetStatus(const v1::GetShardStatusRequest& request,
                                     v1::ShardStatus* response) {
  return host_->GetStatus(Named(request), response);
}

absl::Status ShardControl::FindChief(const v1::FindChiefRequest& request,
                                     v1::FindChiefResponse* response) {
  return host_->FindChief(request, response);
}

absl::Status ShardControl::Finish(const v1::FinishShardRequest& request,
                                  v1::FinishShardResponse* response) {
  return host_->Finish(Named(request), response);
}

}  // namespace keelson
