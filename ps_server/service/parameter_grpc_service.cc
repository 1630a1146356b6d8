#include "ps_server/service/parameter_grpc_service.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/guarded_call.h"
#include "core/rpc/stream_watchdog.h"

namespace keelson {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

using SnapshotCall = grpc::ServerSplitStreamer<v1::StreamSnapshotRequest, v1::SnapshotChunk>;

// "/keelson.v1.ParameterService/Finish"
std::string FullName(absl::string_view method) {
  return absl::StrCat("/", v1::ParameterService::service_full_name(), "/", method);
}

// One call with a stream: its messages, each of which the peer sends or takes within
// StreamWatchdog::kLimit.
class PeerStream {
 public:
  PeerStream(absl::string_view call, grpc::ServerContext* context, const Clock* clock)
      : call_(call),
        peer_(context->peer()),
        context_(context),
        watchdog_([context] { context->TryCancel(); }, clock) {}

  // Returns what `read`, the call's Read, returns; false: the peer has sent its last message.
  absl::StatusOr<bool> Read(absl::FunctionRef<bool()> read) {
    if (watchdog_.Await(read)) return true;
    if (!context_->IsCancelled()) return false;
    return Cut("sent");
  }

  absl::Status Write(absl::FunctionRef<bool()> write) {
    return watchdog_.Await(write) ? absl::OkStatus() : Cut("took");
  }

 private:
  absl::Status Cut(absl::string_view what) const {
    if (!watchdog_.expired()) return absl::CancelledError("the caller has gone");
    const std::string text =
        absl::StrCat(call_, ": ", peer_, " ", what, " nothing for ",
                     absl::FormatDuration(StreamWatchdog::kLimit), "; the stream is cut off");
    LogWarning(text);
    return absl::DeadlineExceededError(text);
  }

  const absl::string_view call_;
  const std::string peer_;  // gRPC forgets it when the call is cancelled
  grpc::ServerContext* const context_;
  StreamWatchdog watchdog_;
};

// Sends the bytes of a data file as messages of kChunkBytes.
class ChunkStream {
 public:
  ChunkStream(PeerStream* peer, SnapshotCall* call) : peer_(peer), call_(call) {}

  absl::Status Append(absl::string_view bytes) {
    std::string* data = chunk_.mutable_data();
    while (!bytes.empty()) {
      const absl::string_view part = bytes.substr(0, kChunkBytes - data->size());
      data->append(part.data(), part.size());
      bytes.remove_prefix(part.size());
      if (data->size() == kChunkBytes) RETURN_IF_ERROR(Send());
    }
    return absl::OkStatus();
  }

  absl::Status End(v1::WriteSnapshotResponse response) {
    if (!chunk_.data().empty()) RETURN_IF_ERROR(Send());
    *chunk_.mutable_end() = std::move(response);
    return Send();
  }

 private:
  absl::Status Send() {
    RETURN_IF_ERROR(peer_->Write([this] { return call_->Write(chunk_); }));
    chunk_.Clear();
    return absl::OkStatus();
  }

  PeerStream* const peer_;
  SnapshotCall* const call_;
  v1::SnapshotChunk chunk_;
};

absl::Status SendSnapshot(ParameterControl* control, PeerStream* peer, SnapshotCall* call) {
  v1::StreamSnapshotRequest request;
  ASSIGN_OR_RETURN(const bool found, peer->Read([&] { return call->Read(&request); }));
  if (!found) return absl::InvalidArgumentError("expected a message, found none");
  ChunkStream stream(peer, call);
  v1::WriteSnapshotResponse response;
  RETURN_IF_ERROR(control->StreamSnapshot(
      request, [&stream](absl::string_view bytes) { return stream.Append(bytes); }, &response));
  return stream.End(std::move(response));
}

absl::Status ReceiveChunks(ParameterControl* control, PeerStream* peer,
                           grpc::ServerReader<v1::InitializeChunk>* reader,
                           v1::InitializeShardResponse* response) {
  const auto next = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    v1::InitializeChunk chunk;
    ASSIGN_OR_RETURN(const bool found, peer->Read([&] { return reader->Read(&chunk); }));
    if (!found) return std::nullopt;
    return chunk;
  };
  ASSIGN_OR_RETURN(const std::optional<v1::InitializeChunk> first, next());
  if (!first.has_value()) {
    return absl::InvalidArgumentError("expected a first message, found none");
  }
  return control->InitializeStreamed(*first, next, response);
}

}  // namespace

std::vector<RawMethod> ParameterGrpcService::RawMethods() {
  const auto handle = [this](BulkMethod method) {
    return [this, method](ByteRope request) { return bulk_->Bulk(method, std::move(request)); };
  };
  // The RequestX methods of a raw service have no common form but their names, hence the three
  // lines.
  return {
      {[this](auto... call) { RequestPull(call...); }, handle(BulkMethod::kPull), FullName("Pull")},
      {[this](auto... call) { RequestPush(call...); }, handle(BulkMethod::kPush), FullName("Push")},
      {[this](auto... call) { RequestPushPull(call...); }, handle(BulkMethod::kPushPull),
       FullName("PushPull")},
  };
}

template <typename Request, typename Response>
grpc::Status ParameterGrpcService::Serve(absl::string_view method, grpc::ServerContext* context,
                                         Unary<Request, Response>* call,
                                         absl::Status (ParameterControl::*handle)(const Request&,
                                                                                  Response*)) {
  return ServeUnary(guard_, FullName(method), context, call,
                    [&](const Request& request, Response* response, CallerKind) {
                      return (control_->*handle)(request, response);
                    });
}

absl::Status ParameterGrpcService::Admit(absl::string_view method,
                                         const grpc::ServerContext& context) const {
  if (guard_ == nullptr) return absl::OkStatus();
  return guard_->Check(FullName(method), context).status();
}

grpc::Status ParameterGrpcService::StreamedInitialize(
    grpc::ServerContext* context,
    Unary<v1::InitializeShardRequest, v1::InitializeShardResponse>* call) {
  return Serve("Initialize", context, call, &ParameterControl::Initialize);
}

grpc::Status ParameterGrpcService::StreamedWriteSnapshot(
    grpc::ServerContext* context,
    Unary<v1::WriteSnapshotRequest, v1::WriteSnapshotResponse>* call) {
  return Serve("WriteSnapshot", context, call, &ParameterControl::WriteSnapshot);
}

grpc::Status ParameterGrpcService::StreamedCommitRound(
    grpc::ServerContext* context, Unary<v1::CommitRoundRequest, v1::CommitRoundResponse>* call) {
  return Serve("CommitRound", context, call, &ParameterControl::CommitRound);
}

grpc::Status ParameterGrpcService::StreamedChiefHeartbeat(
    grpc::ServerContext* context, Unary<v1::ChiefHeartbeatRequest, v1::ShardStatus>* call) {
  return Serve("ChiefHeartbeat", context, call, &ParameterControl::ChiefHeartbeat);
}

grpc::Status ParameterGrpcService::GetStatus(grpc::ServerContext* context,
                                             const v1::GetShardStatusRequest* request,
                                             v1::ShardStatus* response) {
  if (request->with_job_state()) {
    const absl::Status admitted = Admit("ChiefHeartbeat", *context);
    if (!admitted.ok()) return ToGrpcStatus(admitted);
  }
  return ToGrpcStatus(control_->GetStatus(*request, response));
}

grpc::Status ParameterGrpcService::StreamedFindChief(
    grpc::ServerContext* context, Unary<v1::FindChiefRequest, v1::FindChiefResponse>* call) {
  return Serve("FindChief", context, call, &ParameterControl::FindChief);
}

grpc::Status ParameterGrpcService::StreamedFinish(
    grpc::ServerContext* context, Unary<v1::FinishShardRequest, v1::FinishShardResponse>* call) {
  return Serve("Finish", context, call, &ParameterControl::Finish);
}

grpc::Status ParameterGrpcService::StreamedStreamSnapshot(grpc::ServerContext* context,
                                                          SnapshotCall* call) {
  const absl::Status admitted = Admit("StreamSnapshot", *context);
  if (!admitted.ok()) return ToGrpcStatus(admitted);
  PeerStream peer("StreamSnapshot", context, clock_);
  return ToGrpcStatus(SendSnapshot(control_, &peer, call));
}

grpc::Status ParameterGrpcService::InitializeStreamed(
    grpc::ServerContext* context, grpc::ServerReader<v1::InitializeChunk>* reader,
    v1::InitializeShardResponse* response) {
  const absl::Status admitted = Admit("InitializeStreamed", *context);
  if (!admitted.ok()) return ToGrpcStatus(admitted);
  PeerStream peer("InitializeStreamed", context, clock_);
  return ToGrpcStatus(ReceiveChunks(control_, &peer, reader, response));
}

}  // namespace keelson
