// The gRPC shell around a parameter server's handler: control calls through the generated code,
// bulk calls as bytes.
#ifndef KEELSON_PS_SERVER_SERVICE_PARAMETER_GRPC_SERVICE_H_
#define KEELSON_PS_SERVER_SERVICE_PARAMETER_GRPC_SERVICE_H_

#include <vector>

#include "core/base/clock.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/raw_server.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {

// RpcServer::Start takes the service and its raw methods.
class ParameterGrpcService final
    : public v1::ParameterService::WithRawMethod_Pull<v1::ParameterService::WithRawMethod_Push<
          v1::ParameterService::WithRawMethod_PushPull<v1::ParameterService::Service>>> {
 public:
  // All outlive the service; the handlers are usually the same object. A stream whose peer does
  // nothing for StreamWatchdog::kLimit (on the clock) is cut off, and that is logged.
  ParameterGrpcService(ParameterControl* control, BulkHandler* bulk,
                       const Clock* clock = Clock::Real())
      : control_(control), bulk_(bulk), clock_(clock) {}

  // Pull, Push and PushPull. The service outlives the server that they are given to.
  std::vector<RawMethod> RawMethods();

  grpc::Status Initialize(grpc::ServerContext*, const v1::InitializeShardRequest* request,
                          v1::InitializeShardResponse* response) override {
    return ToGrpcStatus(control_->Initialize(*request, response));
  }
  grpc::Status WriteSnapshot(grpc::ServerContext*, const v1::WriteSnapshotRequest* request,
                             v1::WriteSnapshotResponse* response) override {
    return ToGrpcStatus(control_->WriteSnapshot(*request, response));
  }
  grpc::Status StreamSnapshot(grpc::ServerContext* context,
                              const v1::StreamSnapshotRequest* request,
                              grpc::ServerWriter<v1::SnapshotChunk>* writer) override;
  grpc::Status InitializeStreamed(grpc::ServerContext* context,
                                  grpc::ServerReader<v1::InitializeChunk>* reader,
                                  v1::InitializeShardResponse* response) override;
  grpc::Status CommitRound(grpc::ServerContext*, const v1::CommitRoundRequest* request,
                           v1::CommitRoundResponse* response) override {
    return ToGrpcStatus(control_->CommitRound(*request, response));
  }
  grpc::Status ChiefHeartbeat(grpc::ServerContext*, const v1::ChiefHeartbeatRequest* request,
                              v1::ShardStatus* response) override {
    return ToGrpcStatus(control_->ChiefHeartbeat(*request, response));
  }
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetShardStatusRequest* request,
                         v1::ShardStatus* response) override {
    return ToGrpcStatus(control_->GetStatus(*request, response));
  }
  grpc::Status FindChief(grpc::ServerContext*, const v1::FindChiefRequest* request,
                         v1::FindChiefResponse* response) override {
    return ToGrpcStatus(control_->FindChief(*request, response));
  }
  grpc::Status Finish(grpc::ServerContext*, const v1::FinishShardRequest* request,
                      v1::FinishShardResponse* response) override {
    return ToGrpcStatus(control_->Finish(*request, response));
  }

 private:
  ParameterControl* const control_;
  BulkHandler* const bulk_;
  const Clock* const clock_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_PARAMETER_GRPC_SERVICE_H_
