#include "core/client/services/moving_control.h"

#include "absl/strings/str_cat.h"

namespace keelson {

void MovingControl::MoveTo(const std::string& address) {
  std::shared_ptr<ParameterControl> next;
  if (!address.empty()) next = connect_(address);
  MutexLock lock(&mu_);
  if (cancelled_ && next != nullptr) next->CancelFileCalls();
  std::erase_if(left_, [](const auto& control) { return control.expired(); });
  if (current_ != nullptr) left_.push_back(current_);
  current_ = std::move(next);
}

void MovingControl::CancelFileCalls() {
  MutexLock lock(&mu_);
  cancelled_ = true;
  AtEach(&ParameterControl::CancelFileCalls);
}

void MovingControl::GiveUpCalls() {
  MutexLock lock(&mu_);
  AtEach(&ParameterControl::GiveUpCalls);
}

void MovingControl::AtEach(void (ParameterControl::*method)()) {
  if (current_ != nullptr) ((*current_).*method)();
  for (const auto& control : left_) {
    if (const auto there = control.lock()) ((*there).*method)();
  }
}

template <typename Request, typename... Rest>
absl::Status MovingControl::Call(absl::Status (ParameterControl::*method)(const Request&, Rest...),
                                 const Request& request, std::type_identity_t<Rest>... rest) {
  std::shared_ptr<ParameterControl> there;
  {
    MutexLock lock(&mu_);
    there = current_;
  }
  if (there == nullptr) {
    return absl::UnavailableError(absl::StrCat(peer_, " has not said where it is"));
  }
  return ((*there).*method)(request, rest...);
}

absl::Status MovingControl::Initialize(const v1::InitializeShardRequest& request,
                                       v1::InitializeShardResponse* response) {
  return Call(&ParameterControl::Initialize, request, response);
}

absl::Status MovingControl::PrepareCut(const v1::PrepareCutRequest& request,
                                       v1::PrepareCutResponse* response) {
  return Call(&ParameterControl::PrepareCut, request, response);
}

absl::Status MovingControl::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                          v1::WriteSnapshotResponse* response) {
  return Call(&ParameterControl::WriteSnapshot, request, response);
}

absl::Status MovingControl::StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                                           v1::WriteSnapshotResponse* response) {
  return Call(&ParameterControl::StreamSnapshot, request, sink, response);
}

absl::Status MovingControl::InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                               v1::InitializeShardResponse* response) {
  return Call(&ParameterControl::InitializeStreamed, first, next, response);
}

absl::Status MovingControl::ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                           v1::ShardStatus* response) {
  return Call(&ParameterControl::ChiefHeartbeat, request, response);
}

absl::Status MovingControl::CommitRound(const v1::CommitRoundRequest& request,
                                        v1::CommitRoundResponse* response) {
  return Call(&ParameterControl::CommitRound, request, response);
}

absl::Status MovingControl::ReplicateShard(const v1::ReplicateShardRequest& request,
                                           v1::InitializeShardResponse* response) {
  return Call(&ParameterControl::ReplicateShard, request, response);
}

absl::Status MovingControl::ReplicateRound(const v1::ReplicateRoundRequest& request,
                                           v1::ReplicateRoundResponse* response) {
  return Call(&ParameterControl::ReplicateRound, request, response);
}

absl::Status MovingControl::ReadShard(const v1::ReadShardRequest& request, ShardSink sink) {
  return Call(&ParameterControl::ReadShard, request, sink);
}

absl::Status MovingControl::ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) {
  return Call(&ParameterControl::ReadRound, request, part);
}

absl::Status MovingControl::GetStatus(const v1::GetShardStatusRequest& request,
                                      v1::ShardStatus* response) {
  return Call(&ParameterControl::GetStatus, request, response);
}

absl::Status MovingControl::FindChief(const v1::FindChiefRequest& request,
                                      v1::FindChiefResponse* response) {
  return Call(&ParameterControl::FindChief, request, response);
}

absl::Status MovingControl::Finish(const v1::FinishShardRequest& request,
                                   v1::FinishShardResponse* response) {
  return Call(&ParameterControl::Finish, request, response);
}

}  // namespace keelson
