#include "chief/service/chief_grpc_service.h"

#include <string>

namespace keelson {
namespace {

Caller CallerOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return {};
  return {std::string(found->second.data(), found->second.size())};
}

}  // namespace

grpc::Status ChiefGrpcService::SetMode(grpc::ServerContext* context,
                                       const v1::SetModeRequest* request,
                                       v1::SetModeResponse* response) {
  const absl::Status allowed = policy_.CheckSetMode(CallerOf(*context));
  if (!allowed.ok()) return ToGrpcStatus(allowed);
  return ToGrpcStatus(handler_->SetMode(*request, response));
}

grpc::Status ChiefGrpcService::EndTraining(grpc::ServerContext* context,
                                           const v1::EndTrainingRequest* request,
                                           v1::EndTrainingResponse* response) {
  const absl::Status allowed = policy_.CheckEndTraining(CallerOf(*context), request->has_header());
  if (!allowed.ok()) return ToGrpcStatus(allowed);
  return ToGrpcStatus(handler_->EndTraining(*request, response));
}

}  // namespace keelson
