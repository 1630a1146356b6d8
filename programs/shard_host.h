// The shard of a model that a process holds: a parameter server's whole work, or part of what a
// chief or worker does (ShardLayout in core/config).
#ifndef KEELSON_PROGRAMS_SHARD_HOST_H_
#define KEELSON_PROGRAMS_SHARD_HOST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/stop_signal.h"
#include "core/metrics/metric_registry.h"
#include "core/rpc/access.h"
#include "core/rpc/server.h"
#include "core/startup/role_program.h"
#include "ps_server/service/shard_handlers.h"

namespace CLI {
class App;
}

namespace keelson {

struct ShardFlags {
  int io_threads = DefaultIoThreads();
  int64_t max_shard_bytes = DefaultShardBytes();

  // Half of the cores, 1 to 4.
  static int DefaultIoThreads();
  // Three quarters of the memory that the process may use.
  static int64_t DefaultShardBytes();
};

void AddShardFlags(CLI::App* app, ShardFlags* flags);

// Thread-safe.
class ShardHost {
 public:
  // `context` outlives the host.
  ShardHost(const RoleContext& context, const ShardFlags& flags);

  // What serves this shard, or holds its replica, if it is here; null: it never is.
  ParameterControl* control(size_t shard) { return shards_.at(shard); }
  // Takes the bulk messages of all shards that may be here.
  BulkHandler* bulk() { return shards_.calls(); }
  // Raised when the chief has said that the job is over, or by others who end the host.
  StopSignal* end() { return &end_; }
  // See ShardHandlers.
  bool called() const { return shards_.called(); }
  bool finished() const { return shards_.finished(); }

  // Returns the shell by which a server serves the shard. It checks callers with `guard`, which
  // outlives it, as the host does.
  ServiceShell MakeShell(const AccessGuard* guard);

  // The process was asked to stop: serves until the chief needs the shard no more (departure.h), or
  // it is over, or as long as the context allows.
  void Linger();

 private:
  const RoleContext& context_;
  const ShardFlags flags_;
  StopSignal end_;
  ShardHandlers shards_;
  const MetricRegistry::Registration metrics_;
};

// Serves the shard alone on the task's own address, with gRPC's health service, until it is
// destroyed.
class ShardServer {
 public:
  // The host outlives the server. Errors of RpcServer::Start.
  static absl::StatusOr<std::unique_ptr<ShardServer>> Start(const RoleContext& context,
                                                            ShardHost* host);
  ~ShardServer();

  // Where it listens.
  int port() const;

 private:
  class Parts;
  explicit ShardServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace keelson

#endif  // KEELSON_PROGRAMS_SHARD_HOST_H_
