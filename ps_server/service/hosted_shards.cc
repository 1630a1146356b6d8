#include "ps_server/service/hosted_shards.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"

namespace keelson {

HostedShards::HostedShards(std::vector<HostedShard> shards) : shards_(std::move(shards)) {}

absl::StatusOr<const HostedShard*> HostedShards::Find(uint32_t named) const {
  if (named == 0) return &shards_.front();
  for (const HostedShard& hosted : shards_) {
    if (hosted.shard == named - 1) return &hosted;
  }
  const std::string numbers = absl::StrJoin(
      shards_, ", ",
      [](std::string* text, const HostedShard& hosted) { absl::StrAppend(text, hosted.shard); });
  return absl::FailedPreconditionError(absl::StrCat(
      "shard ", named - 1, ": expected one that this process hosts (", numbers, "), found none"));
}

absl::StatusOr<ByteRope> HostedShards::Bulk(BulkMethod method, ByteRope request) {
  ASSIGN_OR_RETURN(const uint32_t named, ShardOf(request));
  const absl::StatusOr<const HostedShard*> hosted = Find(named);
  if (!hosted.ok()) return absl::UnavailableError(hosted.status().message());
  return (*hosted)->bulk->Bulk(method, std::move(request));
}

bool HostedShards::MayAnswer(BulkMethod method, const ByteRope& request,
                             std::function<void()> wake) {
  const absl::StatusOr<uint32_t> named = ShardOf(request);
  const absl::StatusOr<const HostedShard*> hosted = named.ok() ? Find(*named) : named.status();
  return !hosted.ok() || (*hosted)->bulk->MayAnswer(method, request, std::move(wake));
}

template <typename Request, typename Response>
absl::Status HostedShards::Forward(absl::Status (ParameterControl::*call)(const Request&,
                                                                          Response*),
                                   const Request& request, Response* response) {
  ASSIGN_OR_RETURN(const HostedShard* const hosted, Find(request.header().shard()));
  return (hosted->control->*call)(request, response);
}

absl::Status HostedShards::Initialize(const v1::InitializeShardRequest& request,
                                      v1::InitializeShardResponse* response) {
  return Forward(&ParameterControl::Initialize, request, response);
}

absl::Status HostedShards::PrepareCut(const v1::PrepareCutRequest& request,
                                      v1::PrepareCutResponse* response) {
  return Forward(&ParameterControl::PrepareCut, request, response);
}

absl::Status HostedShards::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                         v1::WriteSnapshotResponse* response) {
  return Forward(&ParameterControl::WriteSnapshot, request, response);
}

absl::Status HostedShards::StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                                          v1::WriteSnapshotResponse* response) {
  ASSIGN_OR_RETURN(const HostedShard* const hosted, Find(request.header().shard()));
  return hosted->control->StreamSnapshot(request, sink, response);
}

absl::Status HostedShards::InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                              v1::InitializeShardResponse* response) {
  ASSIGN_OR_RETURN(const HostedShard* const hosted, Find(first.start().header().shard()));
  return hosted->control->InitializeStreamed(first, next, response);
}

absl::Status HostedShards::ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                          v1::ShardStatus* response) {
  return Forward(&ParameterControl::ChiefHeartbeat, request, response);
}

absl::Status HostedShards::CommitRound(const v1::CommitRoundRequest& request,
                                       v1::CommitRoundResponse* response) {
  return Forward(&ParameterControl::CommitRound, request, response);
}

absl::Status HostedShards::ReplicateShard(const v1::ReplicateShardRequest& request,
                                          v1::InitializeShardResponse* response) {
  ASSIGN_OR_RETURN(const HostedShard* const hosted, Find(request.start().header().shard()));
  return hosted->control->ReplicateShard(request, response);
}

absl::Status HostedShards::ReplicateRound(const v1::ReplicateRoundRequest& request,
                                          v1::ReplicateRoundResponse* response) {
  return Forward(&ParameterControl::ReplicateRound, request, response);
}

absl::Status HostedShards::ReadShard(const v1::ReadShardRequest& request, ShardSink sink) {
  ASSIGN_OR_RETURN(const HostedShard* const hosted, Find(request.header().shard()));
  return hosted->control->ReadShard(request, sink);
}

absl::Status HostedShards::ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) {
  return Forward(&ParameterControl::ReadRound, request, part);
}

absl::Status HostedShards::GetStatus(const v1::GetShardStatusRequest& request,
                                     v1::ShardStatus* response) {
  return Forward(&ParameterControl::GetStatus, request, response);
}

absl::Status HostedShards::FindChief(const v1::FindChiefRequest& request,
                                     v1::FindChiefResponse* response) {
  for (const HostedShard& hosted : shards_) {
    RETURN_IF_ERROR(hosted.control->FindChief(request, response));
    if (!response->address().empty()) break;
  }
  return absl::OkStatus();
}

absl::Status HostedShards::Finish(const v1::FinishShardRequest& request,
                                  v1::FinishShardResponse* response) {
  return Forward(&ParameterControl::Finish, request, response);
}

void HostedShards::CancelFileCalls() {
  for (const HostedShard& hosted : shards_) hosted.control->CancelFileCalls();
}

}  // namespace keelson
