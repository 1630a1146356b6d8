// Serves a unary call whose caller is checked before its request is read.
#ifndef KEELSON_CORE_RPC_GUARDED_CALL_H_
#define KEELSON_CORE_RPC_GUARDED_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/rpc/access.h"
#include "core/rpc/grpc_status.h"

namespace keelson {

// gRPC's generated shells decode a request before they call anything; a method of
// WithStreamedUnaryMethod_X reads it by itself. `guard`: null admits everyone, for tests and
// benchmarks. `handle(request, &response)` gets the caller's kind too, kStranger without a guard.
template <typename Request, typename Response, typename Handle>
grpc::Status ServeUnary(const AccessGuard* guard, absl::string_view method,
                        grpc::ServerContext* context,
                        grpc::ServerUnaryStreamer<Request, Response>* call, const Handle& handle) {
  CallerKind kind = CallerKind::kStranger;
  if (guard != nullptr) {
    const absl::StatusOr<CallerKind> found = guard->Check(method, *context);
    if (!found.ok()) return ToGrpcStatus(found.status());
    kind = *found;
  }
  Request request;
  if (!call->Read(&request)) {
    return ToGrpcStatus(absl::InvalidArgumentError("expected a message, found none that is whole"));
  }
  Response response;
  const absl::Status status = handle(request, &response, kind);
  if (!status.ok()) return ToGrpcStatus(status);
  call->Write(response);
  return grpc::Status::OK;
}

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_GUARDED_CALL_H_
