// The gRPC shell around a parameter server's handler.
#ifndef KEELSON_PS_SERVER_PARAMETER_GRPC_SERVICE_H_
#define KEELSON_PS_SERVER_PARAMETER_GRPC_SERVICE_H_

#include "core/client/parameter_service.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {

// `handler` outlives the service.
class ParameterGrpcService final : public v1::ParameterService::Service {
 public:
  explicit ParameterGrpcService(ParameterService* handler) : handler_(handler) {}

  grpc::Status Initialize(grpc::ServerContext* context, const v1::InitializeShardRequest* request,
                          v1::InitializeShardResponse* response) override;
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    v1::PullResponse* response) override;
  grpc::Status Push(grpc::ServerContext* context, const v1::PushRequest* request,
                    v1::PushResponse* response) override;
  grpc::Status WriteSnapshot(grpc::ServerContext* context, const v1::WriteSnapshotRequest* request,
                             v1::WriteSnapshotResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetShardStatusRequest* request,
                         v1::ShardStatus* response) override;
  grpc::Status FindChief(grpc::ServerContext* context, const v1::FindChiefRequest* request,
                         v1::FindChiefResponse* response) override;
  grpc::Status Finish(grpc::ServerContext* context, const v1::FinishShardRequest* request,
                      v1::FinishShardResponse* response) override;

 private:
  ParameterService* const handler_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_PARAMETER_GRPC_SERVICE_H_
