#include "core/client/services/grpc_parameter_control.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/client/services/grpc_call.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/memory_caller.h"
#include "core/rpc/protocol.h"
#include "core/wire/round_part.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using ParameterStub = v1::ParameterService::StubInterface;

constexpr absl::Duration kControlTimeout = absl::Seconds(5);
constexpr absl::Duration kLongestReplicaTimeout = absl::Seconds(10);
constexpr size_t kSmallState = 1 << 20;
constexpr absl::Duration kFileTimeout = absl::Minutes(30);

// The calls of one connection that nobody else can end. Thread-safe.
class CallsUnderWay {
 public:
  // A call, for as long as it may be cancelled. `context` is not used yet.
  class Entry {
   public:
    Entry(CallsUnderWay* calls, grpc::ClientContext* context) : calls_(calls), context_(context) {
      MutexLock lock(&calls_->mu_);
      calls_->entries_.insert(this);
    }
    ~Entry() {
      MutexLock lock(&calls_->mu_);
      calls_->entries_.erase(this);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    bool cancelled() const { return cancelled_; }

   private:
    friend class CallsUnderWay;
    CallsUnderWay* const calls_;
    grpc::ClientContext* const context_;
    std::atomic<bool> cancelled_ = false;
  };

  void Cancel() {
    MutexLock lock(&mu_);
    for (Entry* const entry : entries_) {
      entry->cancelled_ = true;
      entry->context_->TryCancel();
    }
  }

 private:
  Mutex mu_;
  absl::flat_hash_set<Entry*> entries_ ABSL_GUARDED_BY(mu_);
};

class GrpcParameterControl : public ParameterControl {
 public:
  GrpcParameterControl(const std::string& peer, const std::string& address,
                       const Credentials& credentials, const ControlDeadlines& deadlines)
      : deadlines_(deadlines),
        peer_(absl::StrCat(peer, " at ", address)),
        claim_(credentials.claim),
        connection_(address, credentials.channel),
        memory_(peer_, address, claim_) {}

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override {
    return FileCall(&ParameterStub::Initialize, request, response);
  }
  absl::Status PrepareCut(const v1::PrepareCutRequest& request,
                          v1::PrepareCutResponse* response) override {
    return Call(&ParameterStub::PrepareCut, request, response, kControlTimeout);
  }
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override {
    return FileCall(&ParameterStub::WriteSnapshot, request, response);
  }
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override {
    grpc::ClientContext context;
    Prepare(claim_, kFileTimeout, &context);
    const StopCallback cancel(&file_calls_end_, [&context] { context.TryCancel(); });
    const std::unique_ptr<ParameterStub> stub = this->stub();
    const auto reader = stub->StreamSnapshot(&context, request);
    v1::SnapshotChunk chunk;
    bool ended = false;
    absl::Status taken;
    while (taken.ok() && reader->Read(&chunk)) {
      ended = chunk.has_end();
      if (ended) {
        *response = std::move(*chunk.mutable_end());
      } else {
        taken = sink(chunk.data());
      }
    }
    if (!taken.ok()) context.TryCancel();
    const absl::Status status = Ended(FromGrpcStatus(reader->Finish(), peer_));
    RETURN_IF_ERROR(taken);
    RETURN_IF_ERROR(status);
    if (!ended) return absl::InternalError(absl::StrCat(peer_, ": a snapshot without its end"));
    return absl::OkStatus();
  }
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override {
    grpc::ClientContext context;
    Prepare(claim_, kFileTimeout, &context);
    const StopCallback cancel(&file_calls_end_, [&context] { context.TryCancel(); });
    const std::unique_ptr<ParameterStub> stub = this->stub();
    const auto writer = stub->InitializeStreamed(&context, response);
    const absl::Status sent = SendChunks(first, next, writer.get());
    if (!sent.ok()) context.TryCancel();
    const absl::Status status = Ended(FromGrpcStatus(writer->Finish(), peer_));
    return sent.ok() ? status : sent;
  }
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override {
    return NearCall("CommitRound", &ParameterStub::CommitRound, request, response,
                    deadlines_.commit);
  }
  absl::Status ReplicateShard(const v1::ReplicateShardRequest& request,
                              v1::InitializeShardResponse* response) override {
    return FileCall(&ParameterStub::ReplicateShard, request, response);
  }
  absl::Status ReplicateRound(const v1::ReplicateRoundRequest& request,
                              v1::ReplicateRoundResponse* response) override {
    return NearCall("ReplicateRound", &ParameterStub::ReplicateRound, request, response,
                    std::min(deadlines_.commit, kLongestReplicaTimeout));
  }
  absl::Status ReadShard(const v1::ReadShardRequest& request, ShardSink sink) override {
    return Read<v1::InitializeChunk>(&ParameterStub::ReadShard, request, kFileTimeout, sink);
  }
  absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) override {
    const absl::Duration timeout = std::min(deadlines_.commit, kLongestReplicaTimeout);
    const std::optional<absl::Status> status =
        memory_.Call("/keelson.v1.ParameterService/ReadRound", request, part, timeout);
    if (status.has_value()) return absl::IsCancelled(*status) ? GivenUp() : *status;
    v1::RoundPart received;
    // The server checks the protocol of calls that it serves as bytes.
    RETURN_IF_ERROR(Call(&ParameterStub::ReadRound, request, &received, timeout, /*checks=*/false));
    ByteRope bytes;
    bytes.AppendOwned(EncodeRoundPart({received.blocks(), received.payload().size()}));
    bytes.AppendOwned(std::move(*received.mutable_payload()));
    *part = std::move(bytes);
    return absl::OkStatus();
  }
  absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                              v1::ShardStatus* response) override {
    // The job's state may be large.
    const absl::Duration timeout =
        request.job_state().size() < kSmallState ? deadlines_.heartbeat : kControlTimeout;
    return Call(&ParameterStub::ChiefHeartbeat, request, response, timeout);
  }
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override {
    // Anyone may ask, in any build.
    return Call(&ParameterStub::GetStatus, request, response, deadlines_.heartbeat,
                /*checks=*/false);
  }
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override {
    return Call(&ParameterStub::FindChief, request, response, kControlTimeout);
  }
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override {
    return Call(&ParameterStub::Finish, request, response, kControlTimeout);
  }
  void CancelFileCalls() override { file_calls_end_.Raise(); }
  void GiveUpCalls() override {
    memory_.Cancel();
    under_way_.Cancel();
  }

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (ParameterStub::*)(grpc::ClientContext*, const Request&, Response*);

  template <typename Request, typename Response>
  absl::Status Call(Method<Request, Response> method, const Request& request, Response* response,
                    absl::Duration timeout, bool checks = true) const {
    grpc::ClientContext context;
    const CallsUnderWay::Entry entry(&under_way_, &context);
    const absl::Status status = Call(method, request, response, timeout, checks, &context);
    return status.ok() || !entry.cancelled() ? status : GivenUp();
  }
  // A call that the server may serve through memory, too.
  template <typename Request, typename Response>
  absl::Status NearCall(absl::string_view name, Method<Request, Response> method,
                        const Request& request, Response* response, absl::Duration timeout) {
    const std::optional<absl::Status> status = memory_.Call(
        absl::StrCat("/keelson.v1.ParameterService/", name), request, response, timeout);
    if (!status.has_value()) return Call(method, request, response, timeout);
    return absl::IsCancelled(*status) ? GivenUp() : *status;
  }
  absl::Status GivenUp() const {
    return absl::UnavailableError(absl::StrCat(peer_, ": nobody waits for its answer any more"));
  }
  template <typename Request, typename Response>
  absl::Status FileCall(Method<Request, Response> method, const Request& request,
                        Response* response) const {
    grpc::ClientContext context;
    const StopCallback cancel(&file_calls_end_, [&context] { context.TryCancel(); });
    return Ended(Call(method, request, response, kFileTimeout, /*checks=*/true, &context));
  }
  absl::Status Ended(const absl::Status& status) const {
    if (status.ok() || !file_calls_end_.raised()) return status;
    return absl::CancelledError(absl::StrCat(peer_, ": its call was given up"));
  }
  template <typename Request, typename Response>
  absl::Status Call(Method<Request, Response> method, const Request& request, Response* response,
                    absl::Duration timeout, bool checks, grpc::ClientContext* context) const {
    Prepare(claim_, timeout, context);
    const std::unique_ptr<ParameterStub> stub = this->stub();
    const grpc::Status status = ((*stub).*method)(context, request, response);
    // UNIMPLEMENTED without a text comes from gRPC itself: the server does not have the method.
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty()) {
      return CheckProtocol("", peer_);
    }
    if (!status.ok()) return FromGrpcStatus(status, peer_);
    return checks ? CheckAnswer(*context, peer_) : absl::OkStatus();
  }
  // Reads the messages of a stream to its end.
  template <typename Chunk, typename Request>
  absl::Status Read(std::unique_ptr<grpc::ClientReaderInterface<Chunk>> (ParameterStub::*method)(
                        grpc::ClientContext*, const Request&),
                    const Request& request, absl::Duration timeout,
                    absl::FunctionRef<absl::Status(Chunk)> sink) const {
    grpc::ClientContext context;
    Prepare(claim_, timeout, &context);
    const StopCallback cancel(&file_calls_end_, [&context] { context.TryCancel(); });
    const std::unique_ptr<ParameterStub> stub = this->stub();
    const auto reader = ((*stub).*method)(&context, request);
    Chunk chunk;
    absl::Status taken;
    while (taken.ok() && reader->Read(&chunk)) taken = sink(std::move(chunk));
    if (!taken.ok()) context.TryCancel();
    const absl::Status status = Ended(FromGrpcStatus(reader->Finish(), peer_));
    return taken.ok() ? status : taken;
  }
  std::unique_ptr<ParameterStub> stub() const {
    return v1::ParameterService::NewStub(connection_.channel());
  }

  // Returns errors of `next`. A server that answers before the end gets no more chunks.
  static absl::Status SendChunks(const v1::InitializeChunk& first, ChunkSource next,
                                 grpc::ClientWriterInterface<v1::InitializeChunk>* writer) {
    bool open = writer->Write(first);
    while (open) {
      ASSIGN_OR_RETURN(const std::optional<v1::InitializeChunk> chunk, next());
      if (!chunk.has_value()) break;
      open = writer->Write(*chunk);
    }
    writer->WritesDone();
    return absl::OkStatus();
  }

  const ControlDeadlines deadlines_;
  const std::string peer_;
  const Claim claim_;
  const Connection connection_;
  MemoryCaller memory_;  // to a server on this machine
  StopSignal file_calls_end_;
  mutable CallsUnderWay under_way_;
};

}  // namespace

std::unique_ptr<ParameterControl> ConnectParameterControl(const std::string& peer,
                                                          const std::string& address,
                                                          const Credentials& credentials,
                                                          const ControlDeadlines& deadlines) {
  return std::make_unique<GrpcParameterControl>(peer, address, credentials, deadlines);
}

}  // namespace keelson
