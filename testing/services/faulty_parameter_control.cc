#include "testing/services/faulty_parameter_control.h"

namespace keelson {

template <typename Request, typename Response>
absl::Status FaultyParameterControl::Forward(Method<ParameterControl, Request, Response*> method,
                                             const Request& request, Response* response) {
  return Call(request, response, [&] {
    return server_ == nullptr ? absl::OkStatus() : (server_->*method)(request, response);
  });
}

absl::Status FaultyParameterControl::Initialize(const v1::InitializeShardRequest& request,
                                                v1::InitializeShardResponse* response) {
  return Forward(&ParameterControl::Initialize, request, response);
}

absl::Status FaultyParameterControl::PrepareCut(const v1::PrepareCutRequest& request,
                                                v1::PrepareCutResponse* response) {
  return Forward(&ParameterControl::PrepareCut, request, response);
}

absl::Status FaultyParameterControl::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                                   v1::WriteSnapshotResponse* response) {
  return Forward(&ParameterControl::WriteSnapshot, request, response);
}

absl::Status FaultyParameterControl::StreamSnapshot(const v1::StreamSnapshotRequest& request,
                                                    ByteSink sink,
                                                    v1::WriteSnapshotResponse* response) {
  return Call(request, response, [&] {
    return server_ == nullptr ? absl::OkStatus() : server_->StreamSnapshot(request, sink, response);
  });
}

absl::Status FaultyParameterControl::InitializeStreamed(const v1::InitializeChunk& request,
                                                        ChunkSource next,
                                                        v1::InitializeShardResponse* response) {
  return Call(request, response, [&] {
    return server_ == nullptr ? absl::OkStatus()
                              : server_->InitializeStreamed(request, next, response);
  });
}

absl::Status FaultyParameterControl::ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                                    v1::ShardStatus* response) {
  return Forward(&ParameterControl::ChiefHeartbeat, request, response);
}

absl::Status FaultyParameterControl::CommitRound(const v1::CommitRoundRequest& request,
                                                 v1::CommitRoundResponse* response) {
  return Forward(&ParameterControl::CommitRound, request, response);
}

absl::Status FaultyParameterControl::ReplicateShard(const v1::ReplicateShardRequest& request,
                                                    v1::InitializeShardResponse* response) {
  return Forward(&ParameterControl::ReplicateShard, request, response);
}

absl::Status FaultyParameterControl::ReplicateRound(const v1::ReplicateRoundRequest& request,
                                                    v1::ReplicateRoundResponse* response) {
  return Forward(&ParameterControl::ReplicateRound, request, response);
}

absl::Status FaultyParameterControl::ReadShard(const v1::ReadShardRequest& request,
                                               ShardSink sink) {
  v1::InitializeChunk none;
  return Call(request, &none, [&] {
    return server_ == nullptr ? absl::OkStatus() : server_->ReadShard(request, sink);
  });
}

absl::Status FaultyParameterControl::ReadRound(const v1::ReadRoundRequest& request,
                                               ByteRope* part) {
  v1::RoundPart none;
  return Call(request, &none, [&] {
    return server_ == nullptr ? absl::OkStatus() : server_->ReadRound(request, part);
  });
}

absl::Status FaultyParameterControl::GetStatus(const v1::GetShardStatusRequest& request,
                                               v1::ShardStatus* response) {
  return Forward(&ParameterControl::GetStatus, request, response);
}

absl::Status FaultyParameterControl::FindChief(const v1::FindChiefRequest& request,
                                               v1::FindChiefResponse* response) {
  return Forward(&ParameterControl::FindChief, request, response);
}

void FaultyParameterControl::CancelFileCalls() {
  file_calls_end_.Raise();
  if (server_ != nullptr) server_->CancelFileCalls();
}

void FaultyParameterControl::GiveUpCalls() {
  given_up_ = true;
  if (server_ != nullptr) server_->GiveUpCalls();
}

absl::Status FaultyParameterControl::Finish(const v1::FinishShardRequest& request,
                                            v1::FinishShardResponse* response) {
  return Forward(&ParameterControl::Finish, request, response);
}

}  // namespace keelson
