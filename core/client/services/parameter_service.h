// One parameter server as its callers see it: proto/keelson/v1/parameter_service.proto, which says
// what each call does and how it fails. The gRPC client implements it, and so does the server's
// handler, which callers in the same process use directly.
#ifndef KEELSON_CORE_CLIENT_SERVICES_PARAMETER_SERVICE_H_
#define KEELSON_CORE_CLIENT_SERVICES_PARAMETER_SERVICE_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Thread-safe. Calls block; none blocks for ever: remote ones end with DEADLINE_EXCEEDED. Those
// with a body here are not served by every implementation: UNIMPLEMENTED.
class ParameterService {
 public:
  virtual ~ParameterService() = default;

  virtual absl::Status Initialize(const v1::InitializeShardRequest& request,
                                  v1::InitializeShardResponse* response) = 0;

  // Pull, Push or PushPull: the bytes of a request (EncodeBulkRequest and the payload) for those of
  // the response. The response may reference the server's blocks: drop it soon, because a
  // referenced block is copied at its next update. For several calls at a time use a BulkTransport.
  virtual absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) = 0;

  virtual absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                     v1::WriteSnapshotResponse* response) = 0;

  // `sink` takes the bytes of the data file, in order; an error of it ends the call and is
  // returned.
  using ByteSink = absl::FunctionRef<absl::Status(absl::string_view bytes)>;
  virtual absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                                      v1::WriteSnapshotResponse* response) {
    return absl::UnimplementedError("StreamSnapshot");
  }
  // `next` yields the messages after the first, and then nothing; an error of it ends the call and
  // is returned.
  using ChunkSource = absl::FunctionRef<absl::StatusOr<std::optional<v1::InitializeChunk>>()>;
  virtual absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                          v1::InitializeShardResponse* response) {
    return absl::UnimplementedError("InitializeStreamed");
  }
  virtual absl::Status Attend(const v1::AttendRequest& request, v1::ShardStatus* response) {
    return absl::UnimplementedError("Attend");
  }
  virtual absl::Status CommitRound(const v1::CommitRoundRequest& request,
                                   v1::CommitRoundResponse* response) {
    return absl::UnimplementedError("CommitRound");
  }

  virtual absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                                 v1::ShardStatus* response) = 0;
  virtual absl::Status FindChief(const v1::FindChiefRequest& request,
                                 v1::FindChiefResponse* response) = 0;
  virtual absl::Status Finish(const v1::FinishShardRequest& request,
                              v1::FinishShardResponse* response) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_PARAMETER_SERVICE_H_
