#include "core/client/services/grpc_chief_service.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/client/services/grpc_call.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/memory_caller.h"
#include "core/rpc/protocol.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

using ChiefStub = v1::ChiefService::StubInterface;

// A large model's snapshot takes minutes.
constexpr absl::Duration kLongestSave = absl::Minutes(10);

absl::Status NotAChief(absl::string_view address) {
  return absl::UnimplementedError(
      absl::StrCat(address, " is not a chief: it does not offer keelson.v1.ChiefService"));
}

class GrpcChiefService : public ChiefService {
 public:
  GrpcChiefService(const std::string& address, const Credentials& credentials,
                   absl::Duration timeout)
      : address_(address),
        peer_(absl::StrCat("chief at ", address)),
        claim_(credentials.claim),
        connection_(address, credentials.channel),
        memory_(peer_, address, claim_),
        timeout_(timeout) {}

  absl::Status Register(const v1::RegisterRequest& request,
                        v1::RegisterResponse* response) override {
    return Call(&ChiefStub::Register, request, response, timeout_);
  }
  absl::Status GetModel(const v1::GetModelRequest& request,
                        v1::GetModelResponse* response) override {
    return Call(&ChiefStub::GetModel, request, response, TimeoutBeyond(request.max_wait()));
  }
  absl::Status Heartbeat(const v1::HeartbeatRequest& request,
                         v1::HeartbeatResponse* response) override {
    return Call(&ChiefStub::Heartbeat, request, response, timeout_);
  }
  absl::Status AcquireWork(const v1::AcquireWorkRequest& request,
                           v1::AcquireWorkResponse* response) override {
    const absl::Duration timeout = TimeoutBeyond(request.max_wait());
    const std::optional<absl::Status> status =
        memory_.Call("/keelson.v1.ChiefService/AcquireWork", request, response, timeout);
    if (status.has_value()) return *status;
    return Call(&ChiefStub::AcquireWork, request, response, timeout);
  }
  absl::Status Admit(const v1::AdmitRequest& request, v1::AdmitResponse* response) override {
    return Call(&ChiefStub::Admit, request, response, timeout_);
  }
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse* response) override {
    return Call(&ChiefStub::SetMode, request, response, timeout_);
  }
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse* response) override {
    return Call(&ChiefStub::EndTraining, request, response, timeout_);
  }
  absl::Status SaveSnapshot(const v1::SaveSnapshotRequest& request,
                            v1::SaveSnapshotResponse* response) override {
    return Call(&ChiefStub::SaveSnapshot, request, response, timeout_ + kLongestSave);
  }
  absl::Status Leave(const v1::LeaveRequest& request, v1::LeaveResponse* response) override {
    return Call(&ChiefStub::Leave, request, response, timeout_);
  }
  absl::Status AcknowledgeEvaluation(const v1::AcknowledgeEvaluationRequest& request,
                                     v1::AcknowledgeEvaluationResponse* response) override {
    return Call(&ChiefStub::AcknowledgeEvaluation, request, response, timeout_);
  }
  absl::Status ProposeJob(const v1::ProposeJobRequest& request,
                          v1::ProposeJobResponse* response) override {
    return Call(&ChiefStub::ProposeJob, request, response, timeout_);
  }
  absl::Status AnnounceHost(const v1::AnnounceHostRequest& request,
                            v1::AnnounceHostResponse* response) override {
    return Call(&ChiefStub::AnnounceHost, request, response, timeout_);
  }
  absl::Status GetJobStatus(const v1::GetJobStatusRequest& request,
                            v1::JobStatus* response) override {
    // Anyone may ask, in any build.
    return Call(&ChiefStub::GetJobStatus, request, response, timeout_, /*checks=*/false);
  }

 private:
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (ChiefStub::*method)(grpc::ClientContext*, const Request&,
                                                      Response*),
                    const Request& request, Response* response, absl::Duration timeout,
                    bool checks = true) const {
    grpc::ClientContext context;
    Prepare(claim_, timeout, &context);
    const std::unique_ptr<ChiefStub> stub = v1::ChiefService::NewStub(connection_.channel());
    const grpc::Status status = ((*stub).*method)(&context, request, response);
    // UNIMPLEMENTED without a text comes from gRPC itself: the server does not have the service.
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty()) {
      return NotAChief(address_);
    }
    if (!status.ok()) return FromGrpcStatus(status, peer_);
    return checks ? CheckAnswer(context, peer_) : absl::OkStatus();
  }
  absl::Duration TimeoutBeyond(const google::protobuf::Duration& wait) const {
    return timeout_ + absl::Seconds(wait.seconds()) + absl::Nanoseconds(wait.nanos());
  }

  const std::string address_;
  const std::string peer_;
  const Claim claim_;
  const Connection connection_;
  MemoryCaller memory_;  // to a chief on this machine
  const absl::Duration timeout_;
};

}  // namespace

std::unique_ptr<ChiefService> ConnectChiefService(const std::string& address,
                                                  const Credentials& credentials,
                                                  absl::Duration timeout) {
  return std::make_unique<GrpcChiefService>(address, credentials, timeout);
}

}  // namespace keelson
