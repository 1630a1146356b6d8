// gRPC's health service: reports whether a task is ready.
#ifndef KEELSON_CORE_RPC_HEALTH_SERVICE_H_
#define KEELSON_CORE_RPC_HEALTH_SERVICE_H_

#include <atomic>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/rpc/guarded_call.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace keelson {

// SERVING while `ready` is set, NOT_SERVING before, and from Stop on. The service without a name is
// the whole process. Thread-safe.
class HealthService final : public grpc::health::v1::Health::Service {
 public:
  // `ready` outlives the service. `services` are the full names of the services that the process
  // has beside this one, "keelson.v1.ParameterService"; all of them have the status of the process.
  explicit HealthService(const std::atomic<bool>* ready, std::set<std::string> services = {});

  // The process is about to stop serving: watchers are notified, and their calls end. Call it
  // before the server is shut down, which would wait for them.
  void Stop() { stopped_.Raise(); }

 private:
  using HealthCheckRequest = grpc::health::v1::HealthCheckRequest;
  using HealthCheckResponse = grpc::health::v1::HealthCheckResponse;
  using ServingStatus = HealthCheckResponse::ServingStatus;

  // NOT_FOUND: no such service.
  absl::Status AnswerCheck(const HealthCheckRequest& request, HealthCheckResponse* response) const;
  // Sends a first answer at once, then one for each change, at most 0.1 s late. Each call has a
  // thread. UNAVAILABLE: stopped. RESOURCE_EXHAUSTED: 32 calls are watching already.
  absl::Status ServeWatch(grpc::ServerContext* context, ByteCall* call);
  absl::Status WatchUntilStopped(const grpc::ServerContext& context, const std::string& service,
                                 ByteCall* call) const;
  ServingStatus StatusOf(const std::string& service) const;

  const std::atomic<bool>* const ready_;
  const std::set<std::string> services_;
  StopSignal stopped_;
  std::atomic<int> watchers_{0};
  GuardedCalls calls_{nullptr};  // anyone may call
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_HEALTH_SERVICE_H_
