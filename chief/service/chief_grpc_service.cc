#include "chief/service/chief_grpc_service.h"

namespace keelson {

grpc::Status ChiefGrpcService::StreamedEndTraining(
    grpc::ServerContext* context, Unary<v1::EndTrainingRequest, v1::EndTrainingResponse>* call) {
  return ServeUnary(guard_, FullName("EndTraining"), context, call,
                    [&](const v1::EndTrainingRequest& request, v1::EndTrainingResponse* response,
                        CallerKind kind) -> absl::Status {
                      if (kind != CallerKind::kOperator && !request.has_header()) {
                        return absl::PermissionDeniedError(
                            "EndTraining: expected the header of a member, found none");
                      }
                      return handler_->EndTraining(request, response);
                    });
}

}  // namespace keelson
