// The gRPC shell around a parameter server's handler: control calls through the generated code,
// bulk calls as bytes.
#ifndef KEELSON_PS_SERVER_SERVICE_PARAMETER_GRPC_SERVICE_H_
#define KEELSON_PS_SERVER_SERVICE_PARAMETER_GRPC_SERVICE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "core/rpc/access.h"
#include "core/rpc/byte_method.h"
#include "core/rpc/guarded_call.h"
#include "core/rpc/raw_server.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {

// RpcServer::Start takes the service and its raw methods. Callers and the sizes of their requests
// are checked before the requests are decoded.
class ParameterGrpcService final : public v1::ParameterService::WithGenericMethod_Pull<
                                       v1::ParameterService::WithGenericMethod_Push<
                                           v1::ParameterService::WithGenericMethod_PushPull<
                                               v1::ParameterService::WithGenericMethod_ReadRound<
                                                   v1::ParameterService::Service>>>> {
 public:
  // All outlive the service; the first two are usually the same object. A peer of a stream that
  // sends or takes nothing for StreamWatchdog::kLimit (on the clock) is cut off, and that is
  // logged. `guard` checks the callers; null: everyone may call.
  ParameterGrpcService(ParameterControl* control, BulkHandler* bulk,
                       const Clock* clock = Clock::Real(), const AccessGuard* guard = nullptr);

  // Pull, Push, PushPull and ReadRound, to be served with the same guard. The service outlives the
  // server that they are given to.
  std::vector<RawMethod> RawMethods();
  // CommitRound and ReplicateRound, likewise.
  std::vector<ByteMethod> ByteMethods();

 private:
  // Serves the call by this method of the control interface.
  template <typename Request, typename Response>
  void Serve(absl::string_view method,
             absl::Status (ParameterControl::*handle)(const Request&, Response*));
  template <typename Request, typename Response>
  ByteMethod ByteMethodBy(absl::string_view method,
                          absl::Status (ParameterControl::*handle)(const Request&, Response*));
  RawMethod ReadRoundMethod();
  void ServeStream(absl::string_view method,
                   absl::Status (ParameterGrpcService::*serve)(grpc::ServerContext*, ByteCall*));

  // Anyone may ask, but the persisted job state, which names the members, is for those who may
  // bring it: chiefs.
  absl::Status ServeGetStatus(grpc::ServerContext* context, ByteCall* call);
  absl::Status ServeStreamSnapshot(grpc::ServerContext* context, ByteCall* call);
  absl::Status ServeReadShard(grpc::ServerContext* context, ByteCall* call);
  absl::Status ServeInitializeStreamed(grpc::ServerContext* context, ByteCall* call);

  ParameterControl* const control_;
  BulkHandler* const bulk_;
  const Clock* const clock_;
  GuardedCalls calls_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_PARAMETER_GRPC_SERVICE_H_
