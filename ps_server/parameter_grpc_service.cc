#include "ps_server/parameter_grpc_service.h"

#include "core/rpc/grpc_status.h"

namespace keelson {

grpc::Status ParameterGrpcService::Initialize(grpc::ServerContext* context,
                                              const v1::InitializeShardRequest* request,
                                              v1::InitializeShardResponse* response) {
  return ToGrpcStatus(handler_->Initialize(*request, response));
}

grpc::Status ParameterGrpcService::Pull(grpc::ServerContext* context,
                                        const v1::PullRequest* request,
                                        v1::PullResponse* response) {
  return ToGrpcStatus(handler_->Pull(*request, response));
}

grpc::Status ParameterGrpcService::Push(grpc::ServerContext* context,
                                        const v1::PushRequest* request,
                                        v1::PushResponse* response) {
  return ToGrpcStatus(handler_->Push(*request, response));
}

grpc::Status ParameterGrpcService::WriteSnapshot(grpc::ServerContext* context,
                                                 const v1::WriteSnapshotRequest* request,
                                                 v1::WriteSnapshotResponse* response) {
  return ToGrpcStatus(handler_->WriteSnapshot(*request, response));
}

grpc::Status ParameterGrpcService::GetStatus(grpc::ServerContext* context,
                                             const v1::GetShardStatusRequest* request,
                                             v1::ShardStatus* response) {
  return ToGrpcStatus(handler_->GetStatus(*request, response));
}

grpc::Status ParameterGrpcService::FindChief(grpc::ServerContext* context,
                                             const v1::FindChiefRequest* request,
                                             v1::FindChiefResponse* response) {
  return ToGrpcStatus(handler_->FindChief(*request, response));
}

grpc::Status ParameterGrpcService::Finish(grpc::ServerContext* context,
                                          const v1::FinishShardRequest* request,
                                          v1::FinishShardResponse* response) {
  return ToGrpcStatus(handler_->Finish(*request, response));
}

}  // namespace keelson
