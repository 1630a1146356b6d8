#include "core/client/grpc_chief_service.h"

#include "absl/strings/str_cat.h"
#include "core/client/grpc_call.h"
#include "core/rpc/channel.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

using Stub = v1::ChiefService::StubInterface;

constexpr absl::Duration kTimeout = absl::Seconds(5);

absl::Duration TimeoutBeyond(const google::protobuf::Duration& wait) {
  return kTimeout + absl::Seconds(wait.seconds()) + absl::Nanoseconds(wait.nanos());
}

class GrpcChiefService : public ChiefService {
 public:
  GrpcChiefService(std::string peer, std::unique_ptr<Stub> stub)
      : peer_(std::move(peer)), stub_(std::move(stub)) {}

  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override {
    return CallUnary(stub_.get(), &Stub::Register, request, response, kTimeout, peer_);
  }
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override {
    return CallUnary(stub_.get(), &Stub::GetModel, request, response,
                     TimeoutBeyond(request.max_wait()), peer_);
  }
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override {
    return CallUnary(stub_.get(), &Stub::Heartbeat, request, response, kTimeout, peer_);
  }
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override {
    return CallUnary(stub_.get(), &Stub::AcquireWork, request, response,
                     TimeoutBeyond(request.max_wait()), peer_);
  }
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) override {
    return CallUnary(stub_.get(), &Stub::Leave, request, response, kTimeout, peer_);
  }
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse* response) override {
    return CallUnary(stub_.get(), &Stub::AcknowledgeEvaluation, request, response, kTimeout, peer_);
  }
  absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                            v1::JobStatus* response) override {
    return CallUnary(stub_.get(), &Stub::GetJobStatus, request, response, kTimeout, peer_);
  }

 private:
  const std::string peer_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace

std::unique_ptr<ChiefService> ConnectChiefService(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  return std::make_unique<GrpcChiefService>(
      absl::StrCat("chief at ", address),
      v1::ChiefService::NewStub(CreateChannel(address, credentials)));
}

}  // namespace keelson
