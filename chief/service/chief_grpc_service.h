// The gRPC shell around the chief's handler.
#ifndef KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_
#define KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/servers/announced_hosts.h"
#include "chief/service/chief_handler.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/client/services/chief_service.h"
#include "core/rpc/access.h"
#include "core/rpc/byte_method.h"
#include "core/rpc/guarded_call.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {

// Callers and the sizes of their requests are checked before the requests are decoded. Calls that
// wait (GetModel, AcquireWork) hold no thread; one thread of this object answers them.
class ChiefGrpcService final : public v1::ChiefService::Service {
 public:
  // All outlive the service. `guard` checks the callers; null: everyone may call. `hosts` takes
  // what processes say of where they are; null: the cluster lists them, and the handler refuses.
  explicit ChiefGrpcService(ChiefHandler* handler, const AccessGuard* guard = nullptr,
                            AnnouncedHosts* hosts = nullptr);
  ~ChiefGrpcService() override;

  // AcquireWork, to be served with the same guard. The service outlives the server that they are
  // given to.
  std::vector<ByteMethod> ByteMethods();

 private:
  template <typename Request, typename Response>
  using BeginWait = std::function<CancelWait(const Request&, CallerKind,
                                             std::function<void(absl::StatusOr<Response>)>)>;

  // Serves the call by this method of the handler. A member names a task of its own role.
  template <typename Request, typename Response>
  void Serve(absl::string_view method,
             absl::Status (ChiefService::*handle)(const Request&, Response*));
  // The same for a call that may wait.
  template <typename Request, typename Response>
  void ServeWaiting(absl::string_view method,
                    ChiefHandler::Cancel (ChiefHandler::*begin)(
                        const Request&, std::function<void(absl::StatusOr<Response>)>));
  template <typename Request, typename Response>
  BeginWait<Request, Response> BeginBy(
      absl::string_view method,
      ChiefHandler::Cancel (ChiefHandler::*begin)(const Request&,
                                                  std::function<void(absl::StatusOr<Response>)>));
  void ServeAnnouncements();
  // Serves a change of the job's course. A member makes it under its own name, which the handler
  // checks; only an operator has none.
  template <typename Request, typename Response>
  void ServeChange(absl::string_view method,
                   absl::Status (ChiefService::*handle)(const Request&, Response*));

  ChiefHandler* const handler_;
  AnnouncedHosts* const hosts_;
  GuardedCalls calls_;
  StopSignal stop_;
  Thread answers_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVICE_CHIEF_GRPC_SERVICE_H_
