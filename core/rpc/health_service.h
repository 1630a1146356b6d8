// gRPC's health service: reports whether a task is ready.
#ifndef KEELSON_CORE_RPC_HEALTH_SERVICE_H_
#define KEELSON_CORE_RPC_HEALTH_SERVICE_H_

#include <atomic>
#include <set>
#include <string>

#include "core/base/stop_signal.h"
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

  // NOT_FOUND: no such service.
  grpc::Status Check(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;

  // Sends a first answer at once, then one for each change, at most 0.1 s late. Each call has a
  // thread. UNAVAILABLE: stopped. RESOURCE_EXHAUSTED: 32 calls are watching already.
  grpc::Status Watch(grpc::ServerContext* context,
                     const grpc::health::v1::HealthCheckRequest* request,
                     grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) override;

 private:
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  ServingStatus StatusOf(const std::string& service) const;
  grpc::Status WatchUntilStopped(
      grpc::ServerContext* context, const std::string& service,
      grpc::ServerWriter<grpc::health::v1::HealthCheckResponse>* writer) const;

  const std::atomic<bool>* const ready_;
  const std::set<std::string> services_;
  StopSignal stopped_;
  std::atomic<int> watchers_{0};
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_HEALTH_SERVICE_H_
