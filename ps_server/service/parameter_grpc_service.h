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
#include "core/rpc/raw_server.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {

// RpcServer::Start takes the service and its raw methods. Requests of control calls are read by the
// methods themselves, after their callers were checked.
class ParameterGrpcService final
    : public v1::ParameterService::WithStreamedUnaryMethod_Initialize<
          v1::ParameterService::WithStreamedUnaryMethod_WriteSnapshot<
              v1::ParameterService::WithSplitStreamingMethod_StreamSnapshot<
                  v1::ParameterService::WithStreamedUnaryMethod_CommitRound<
                      v1::ParameterService::WithStreamedUnaryMethod_ChiefHeartbeat<
                          v1::ParameterService::WithStreamedUnaryMethod_FindChief<
                              v1::ParameterService::WithStreamedUnaryMethod_Finish<
                                  v1::ParameterService::WithRawMethod_Pull<
                                      v1::ParameterService::WithRawMethod_Push<
                                          v1::ParameterService::WithRawMethod_PushPull<
                                              v1::ParameterService::Service>>>>>>>>>> {
 public:
  // All outlive the service; the first two are usually the same object. A peer of a stream that
  // sends or takes nothing for StreamWatchdog::kLimit (on the clock) is cut off, and that is
  // logged. `guard` checks the callers; null: everyone may call.
  ParameterGrpcService(ParameterControl* control, BulkHandler* bulk,
                       const Clock* clock = Clock::Real(), const AccessGuard* guard = nullptr)
      : control_(control), bulk_(bulk), clock_(clock), guard_(guard) {}

  // Pull, Push and PushPull, to be served with the same guard. The service outlives the server that
  // they are given to.
  std::vector<RawMethod> RawMethods();

 private:
  template <typename Request, typename Response>
  using Unary = grpc::ServerUnaryStreamer<Request, Response>;

  grpc::Status StreamedInitialize(
      grpc::ServerContext* context,
      Unary<v1::InitializeShardRequest, v1::InitializeShardResponse>* call) override;
  grpc::Status StreamedWriteSnapshot(
      grpc::ServerContext* context,
      Unary<v1::WriteSnapshotRequest, v1::WriteSnapshotResponse>* call) override;
  grpc::Status StreamedStreamSnapshot(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<v1::StreamSnapshotRequest, v1::SnapshotChunk>* call) override;
  grpc::Status InitializeStreamed(grpc::ServerContext* context,
                                  grpc::ServerReader<v1::InitializeChunk>* reader,
                                  v1::InitializeShardResponse* response) override;
  grpc::Status StreamedCommitRound(
      grpc::ServerContext* context,
      Unary<v1::CommitRoundRequest, v1::CommitRoundResponse>* call) override;
  grpc::Status StreamedChiefHeartbeat(
      grpc::ServerContext* context,
      Unary<v1::ChiefHeartbeatRequest, v1::ShardStatus>* call) override;
  // Anyone may ask: a request that does not end must not hold a thread. The persisted job state,
  // which names the members, is for those who may bring it: chiefs.
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetShardStatusRequest* request,
                         v1::ShardStatus* response) override;
  grpc::Status StreamedFindChief(grpc::ServerContext* context,
                                 Unary<v1::FindChiefRequest, v1::FindChiefResponse>* call) override;
  grpc::Status StreamedFinish(
      grpc::ServerContext* context,
      Unary<v1::FinishShardRequest, v1::FinishShardResponse>* call) override;

  // Serves the call by this method of the control interface.
  template <typename Request, typename Response>
  grpc::Status Serve(absl::string_view method, grpc::ServerContext* context,
                     Unary<Request, Response>* call,
                     absl::Status (ParameterControl::*handle)(const Request&, Response*));
  absl::Status Admit(absl::string_view method, const grpc::ServerContext& context) const;

  ParameterControl* const control_;
  BulkHandler* const bulk_;
  const Clock* const clock_;
  const AccessGuard* const guard_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_PARAMETER_GRPC_SERVICE_H_
