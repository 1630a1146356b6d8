#include "ps_server/parameter_grpc_service.h"

#include <utility>

#include "core/rpc/grpc_status.h"

namespace keelson {

std::vector<RawMethod> ParameterGrpcService::RawMethods() {
  const auto handle = [this](BulkMethod method) {
    return [this, method](ByteRope request) { return handler_->Bulk(method, std::move(request)); };
  };
  // A raw service's RequestX is a template of nothing but its name, hence the three lines.
  return {
      {[this](auto... call) { RequestPull(call...); }, handle(BulkMethod::kPull)},
      {[this](auto... call) { RequestPush(call...); }, handle(BulkMethod::kPush)},
      {[this](auto... call) { RequestPushPull(call...); }, handle(BulkMethod::kPushPull)},
  };
}

grpc::Status ParameterGrpcService::Initialize(grpc::ServerContext* context,
                                              const v1::InitializeShardRequest* request,
                                              v1::InitializeShardResponse* response) {
  return ToGrpcStatus(handler_->Initialize(*request, response));
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
