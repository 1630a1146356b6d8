// The calls that control one parameter server: proto/keelson/v1/parameter_service.proto, which says
// what each call does and how it fails. The gRPC client implements them, and so does the server's
// handler, which callers in the same process use directly. The bulk calls have an interface of
// their own (bulk_handler.h).
#ifndef KEELSON_CORE_CLIENT_SERVICES_PARAMETER_CONTROL_H_
#define KEELSON_CORE_CLIENT_SERVICES_PARAMETER_CONTROL_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/wire/byte_rope.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Thread-safe. Calls block; none blocks for ever: remote ones end with DEADLINE_EXCEEDED.
class ParameterControl {
 public:
  virtual ~ParameterControl() = default;

  virtual absl::Status Initialize(const v1::InitializeShardRequest& request,
                                  v1::InitializeShardResponse* response) = 0;

  virtual absl::Status PrepareCut(const v1::PrepareCutRequest& request,
                                  v1::PrepareCutResponse* response) = 0;
  virtual absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                     v1::WriteSnapshotResponse* response) = 0;

  // `sink` takes the bytes of the data file, in order; an error of it ends the call and is
  // returned.
  using ByteSink = absl::FunctionRef<absl::Status(absl::string_view bytes)>;
  virtual absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                                      v1::WriteSnapshotResponse* response) = 0;
  // `next` yields the messages after the first, and then nothing; an error of it ends the call and
  // is returned.
  using ChunkSource = absl::FunctionRef<absl::StatusOr<std::optional<v1::InitializeChunk>>()>;
  virtual absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                          v1::InitializeShardResponse* response) = 0;

  virtual absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                      v1::ShardStatus* response) = 0;
  virtual absl::Status CommitRound(const v1::CommitRoundRequest& request,
                                   v1::CommitRoundResponse* response) = 0;
  // Replicas of shards, which only processes that train keep: others refuse.
  virtual absl::Status ReplicateShard(const v1::ReplicateShardRequest& request,
                                      v1::InitializeShardResponse* response) {
    return NoReplicas();
  }
  virtual absl::Status ReplicateRound(const v1::ReplicateRoundRequest& request,
                                      v1::ReplicateRoundResponse* response) {
    return NoReplicas();
  }
  // `sink` takes the messages in order; an error of it ends the call and is returned.
  using ShardSink = absl::FunctionRef<absl::Status(v1::InitializeChunk chunk)>;
  virtual absl::Status ReadShard(const v1::ReadShardRequest& request, ShardSink sink) {
    return NoReplicas();
  }
  // The bytes of a v1::RoundPart (core/wire/round_part.h). Drop them soon: there may be room for
  // few of them.
  virtual absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) {
    return NoReplicas();
  }

  virtual absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                                 v1::ShardStatus* response) = 0;
  virtual absl::Status FindChief(const v1::FindChiefRequest& request,
                                 v1::FindChiefResponse* response) = 0;
  virtual absl::Status Finish(const v1::FinishShardRequest& request,
                              v1::FinishShardResponse* response) = 0;

  // Ends the calls under way that may take as long as a server's storage (Initialize,
  // WriteSnapshot and their streamed forms), and later ones, with CANCELLED; what a server has
  // begun, it may complete. Calls within a process are not ended.
  virtual void CancelFileCalls() {}
  // Ends the other calls under way with UNAVAILABLE, because their server is known to be lost or
  // frozen; later ones are made as ever. Calls within a process are not ended.
  virtual void GiveUpCalls() {}

 private:
  static absl::Status NoReplicas() {
    return absl::FailedPreconditionError("this server keeps no replicas of shards");
  }
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_PARAMETER_CONTROL_H_
