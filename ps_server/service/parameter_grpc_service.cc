#include "ps_server/service/parameter_grpc_service.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/protocol.h"
#include "core/rpc/stream_watchdog.h"
#include "google/protobuf/message.h"

namespace keelson {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

constexpr absl::string_view kService = v1::ParameterService::service_full_name();

// "/keelson.v1.ParameterService/Finish"
std::string FullName(absl::string_view method) { return FullMethodName(kService, method); }

// One call with a stream: its messages, each of which the peer sends or takes within
// StreamWatchdog::kLimit.
class PeerStream {
 public:
  PeerStream(absl::string_view method, grpc::ServerContext* context, ByteCall* call,
             const GuardedCalls* calls, const Clock* clock)
      : method_(method),
        peer_(context->peer()),
        context_(context),
        call_(call),
        calls_(calls),
        watchdog_([context] { context->TryCancel(); }, clock) {}

  // False: the peer has sent its last message. INVALID_ARGUMENT: GuardedCalls::Read.
  absl::StatusOr<bool> Read(google::protobuf::Message* message) {
    absl::StatusOr<bool> found;
    watchdog_.Await([&] {
      found = calls_->Read(FullName(method_), *context_, call_, message);
      return found.ok() && *found;
    });
    if (!found.ok() || *found || !context_->IsCancelled()) return found;
    return Cut("sent");
  }

  absl::Status Write(const google::protobuf::Message& message) {
    const bool taken = watchdog_.Await([&] { return GuardedCalls::Write(message, call_); });
    return taken ? absl::OkStatus() : Cut("took");
  }

 private:
  absl::Status Cut(absl::string_view what) const {
    if (!watchdog_.expired()) return absl::CancelledError("the caller has gone");
    const std::string text =
        absl::StrCat(method_, ": ", peer_, " ", what, " nothing for ",
                     absl::FormatDuration(StreamWatchdog::kLimit), "; the stream is cut off");
    LogWarning(text);
    return absl::DeadlineExceededError(text);
  }

  const absl::string_view method_;
  const std::string peer_;  // gRPC forgets it when the call is cancelled
  grpc::ServerContext* const context_;
  ByteCall* const call_;
  const GuardedCalls* const calls_;
  StreamWatchdog watchdog_;
};

// Sends the bytes of a data file as messages of kChunkBytes.
class ChunkStream {
 public:
  explicit ChunkStream(PeerStream* peer) : peer_(peer) {}

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
    RETURN_IF_ERROR(peer_->Write(chunk_));
    chunk_.Clear();
    return absl::OkStatus();
  }

  PeerStream* const peer_;
  v1::SnapshotChunk chunk_;
};

absl::Status ReadRequest(PeerStream* peer, google::protobuf::Message* request) {
  ASSIGN_OR_RETURN(const bool found, peer->Read(request));
  return found ? absl::OkStatus() : absl::InvalidArgumentError("expected a message, found none");
}

absl::Status SendSnapshot(ParameterControl* control, PeerStream* peer) {
  v1::StreamSnapshotRequest request;
  RETURN_IF_ERROR(ReadRequest(peer, &request));
  ChunkStream stream(peer);
  v1::WriteSnapshotResponse response;
  RETURN_IF_ERROR(control->StreamSnapshot(
      request, [&stream](absl::string_view bytes) { return stream.Append(bytes); }, &response));
  return stream.End(std::move(response));
}

absl::Status ReceiveChunks(ParameterControl* control, PeerStream* peer,
                           v1::InitializeShardResponse* response) {
  const auto next = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    v1::InitializeChunk chunk;
    ASSIGN_OR_RETURN(const bool found, peer->Read(&chunk));
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

ParameterGrpcService::ParameterGrpcService(ParameterControl* control, BulkHandler* bulk,
                                           const Clock* clock, const AccessGuard* guard)
    : control_(control), bulk_(bulk), clock_(clock), calls_(guard) {
  Serve("Initialize", &ParameterControl::Initialize);
  Serve("PrepareCut", &ParameterControl::PrepareCut);
  Serve("WriteSnapshot", &ParameterControl::WriteSnapshot);
  Serve("CommitRound", &ParameterControl::CommitRound);
  Serve("ChiefHeartbeat", &ParameterControl::ChiefHeartbeat);
  MarkMethodStreamed(MethodIndex(kService, "Attend"),
                     calls_.Unary<v1::ChiefHeartbeatRequest, v1::ShardStatus>(
                         FullName("Attend"), [](const auto&, v1::ShardStatus*, CallerKind) {
                           return CheckProtocol("", "the caller");
                         }));
  Serve("FindChief", &ParameterControl::FindChief);
  Serve("Finish", &ParameterControl::Finish);
  Serve("ReplicateShard", &ParameterControl::ReplicateShard);
  Serve("ReplicateRound", &ParameterControl::ReplicateRound);
  ServeStream("ReadShard", &ParameterGrpcService::ServeReadShard);
  ServeStream("GetStatus", &ParameterGrpcService::ServeGetStatus);
  ServeStream("StreamSnapshot", &ParameterGrpcService::ServeStreamSnapshot);
  ServeStream("InitializeStreamed", &ParameterGrpcService::ServeInitializeStreamed);
}

std::vector<RawMethod> ParameterGrpcService::RawMethods() {
  std::vector<RawMethod> methods;
  for (const BulkMethod method : {BulkMethod::kPull, BulkMethod::kPush, BulkMethod::kPushPull}) {
    RawMethod& raw = methods.emplace_back();
    raw.name = FullName(BulkMethodName(method));
    raw.handle = [this, method](ByteRope request) {
      return bulk_->Bulk(method, std::move(request));
    };
    if (method != BulkMethod::kPull) continue;
    raw.may_answer = [this, method](const ByteRope& request, std::function<void()> wake) {
      return bulk_->MayAnswer(method, request, std::move(wake));
    };
  }
  methods.push_back(ReadRoundMethod());
  return methods;
}

RawMethod ParameterGrpcService::ReadRoundMethod() {
  const auto read = [this](const ByteRope& bytes) -> absl::StatusOr<ByteRope> {
    v1::ReadRoundRequest request;
    if (!request.ParseFromString(bytes.ToString())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected a ", request.GetTypeName(), ", found ", bytes.size(), " bytes that are none"));
    }
    ByteRope part;
    RETURN_IF_ERROR(control_->ReadRound(request, &part));
    return part;
  };
  return {FullName("ReadRound"), read};
}

template <typename Request, typename Response>
void ParameterGrpcService::Serve(absl::string_view method,
                                 absl::Status (ParameterControl::*handle)(const Request&,
                                                                          Response*)) {
  MarkMethodStreamed(
      MethodIndex(kService, method),
      calls_.Unary<Request, Response>(
          FullName(method), [this, handle](const Request& request, Response* response, CallerKind) {
            return (control_->*handle)(request, response);
          }));
}

std::vector<ByteMethod> ParameterGrpcService::ByteMethods() {
  return {ByteMethodBy("CommitRound", &ParameterControl::CommitRound),
          ByteMethodBy("ReplicateRound", &ParameterControl::ReplicateRound)};
}

template <typename Request, typename Response>
ByteMethod ParameterGrpcService::ByteMethodBy(
    absl::string_view method, absl::Status (ParameterControl::*handle)(const Request&, Response*)) {
  return ByteMethodOf<Request, Response>(
      FullName(method), [this, handle](const Request& request, CallerKind,
                                       const std::function<void(absl::StatusOr<Response>)>& done) {
        Response response;
        const absl::Status status = (control_->*handle)(request, &response);
        if (status.ok()) {
          done(std::move(response));
        } else {
          done(status);
        }
        return CancelWait();
      });
}

void ParameterGrpcService::ServeStream(
    absl::string_view method,
    absl::Status (ParameterGrpcService::*serve)(grpc::ServerContext*, ByteCall*)) {
  MarkMethodStreamed(MethodIndex(kService, method),
                     GuardedCalls::Handler([this, serve](auto* context, ByteCall* call) {
                       return (this->*serve)(context, call);
                     }));
}

absl::Status ParameterGrpcService::ServeGetStatus(grpc::ServerContext* context, ByteCall* call) {
  const std::string method = FullName("GetStatus");
  ASSIGN_OR_RETURN(const CallerKind kind, calls_.Admit(method, *context));
  v1::GetShardStatusRequest request;
  RETURN_IF_ERROR(calls_.ReadOnly(method, kind, context, call, &request));
  if (request.with_job_state()) {
    RETURN_IF_ERROR(calls_.Admit(FullName("ChiefHeartbeat"), *context).status());
  }
  v1::ShardStatus response;
  RETURN_IF_ERROR(control_->GetStatus(request, &response));
  GuardedCalls::Write(response, call);
  return absl::OkStatus();
}

absl::Status ParameterGrpcService::ServeStreamSnapshot(grpc::ServerContext* context,
                                                       ByteCall* call) {
  constexpr absl::string_view kMethod = "StreamSnapshot";
  RETURN_IF_ERROR(calls_.Admit(FullName(kMethod), *context).status());
  PeerStream peer(kMethod, context, call, &calls_, clock_);
  return SendSnapshot(control_, &peer);
}

absl::Status ParameterGrpcService::ServeReadShard(grpc::ServerContext* context, ByteCall* call) {
  constexpr absl::string_view kMethod = "ReadShard";
  RETURN_IF_ERROR(calls_.Admit(FullName(kMethod), *context).status());
  PeerStream peer(kMethod, context, call, &calls_, clock_);
  v1::ReadShardRequest request;
  RETURN_IF_ERROR(ReadRequest(&peer, &request));
  return control_->ReadShard(
      request, [&peer](const v1::InitializeChunk& chunk) { return peer.Write(chunk); });
}

absl::Status ParameterGrpcService::ServeInitializeStreamed(grpc::ServerContext* context,
                                                           ByteCall* call) {
  constexpr absl::string_view kMethod = "InitializeStreamed";
  RETURN_IF_ERROR(calls_.Admit(FullName(kMethod), *context).status());
  PeerStream peer(kMethod, context, call, &calls_, clock_);
  v1::InitializeShardResponse response;
  RETURN_IF_ERROR(ReceiveChunks(control_, &peer, &response));
  peer.Write(response).IgnoreError();
  return absl::OkStatus();
}

}  // namespace keelson
