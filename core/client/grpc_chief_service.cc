#include "core/client/grpc_chief_service.h"

#include "absl/strings/str_cat.h"
#include "core/client/grpc_call.h"
#include "core/rpc/channel.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

using Stub = v1::ChiefService::StubInterface;

class GrpcChiefService : public ChiefService {
 public:
  GrpcChiefService(const std::string& address,
                   const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                   absl::Duration timeout)
      : peer_(absl::StrCat("chief at ", address)),
        connection_(address, credentials),
        timeout_(timeout) {}

  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override {
    return CallUnary(stub().get(), &Stub::Register, request, response, timeout_, peer_);
  }
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override {
    return CallUnary(stub().get(), &Stub::GetModel, request, response,
                     TimeoutBeyond(request.max_wait()), peer_);
  }
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override {
    return CallUnary(stub().get(), &Stub::Heartbeat, request, response, timeout_, peer_);
  }
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override {
    return CallUnary(stub().get(), &Stub::AcquireWork, request, response,
                     TimeoutBeyond(request.max_wait()), peer_);
  }
  absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) override {
    return CallUnary(stub().get(), &Stub::Admit, request, response, timeout_, peer_);
  }
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse* response) override {
    return CallUnary(stub().get(), &Stub::SetMode, request, response, timeout_, peer_);
  }
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) override {
    return CallUnary(stub().get(), &Stub::Leave, request, response, timeout_, peer_);
  }
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse* response) override {
    return CallUnary(stub().get(), &Stub::AcknowledgeEvaluation, request, response, timeout_,
                     peer_);
  }
  absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                            v1::JobStatus* response) override {
    return CallUnary(stub().get(), &Stub::GetJobStatus, request, response, timeout_, peer_);
  }

 private:
  std::unique_ptr<Stub> stub() const { return v1::ChiefService::NewStub(connection_.channel()); }
  absl::Duration TimeoutBeyond(const google::protobuf::Duration& wait) const {
    return timeout_ + absl::Seconds(wait.seconds()) + absl::Nanoseconds(wait.nanos());
  }

  const std::string peer_;
  const Connection connection_;
  const absl::Duration timeout_;
};

}  // namespace

std::unique_ptr<ChiefService> ConnectChiefService(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    absl::Duration timeout) {
  return std::make_unique<GrpcChiefService>(address, credentials, timeout);
}

}  // namespace keelson
