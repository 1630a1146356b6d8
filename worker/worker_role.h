// The worker's role as a main runs it: flags, devices, data, and the worker itself.
#ifndef KEELSON_WORKER_WORKER_ROLE_H_
#define KEELSON_WORKER_WORKER_ROLE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/stop_signal.h"
#include "core/client/grpc_parameter_client.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/retry.h"
#include "core/client/sharded_parameter_client.h"
#include "core/config/shard_layout.h"
#include "core/device/device_group.h"
#include "core/startup/role_program.h"
#include "worker/worker.h"

namespace CLI {
class App;
}

namespace keelson {

struct WorkerFlags {
  std::string device = "auto";        // see CreateDevices
  std::string precision = "float32";  // see ParsePrecision
  int compute_threads = 0;            // 0: see ComputeThreads
  int peer_timeout_seconds = 600;
  int step_bound_seconds = 0;  // RegisterRequest.step_bound
  BulkConnectionOptions bulk;
};

void AddWorkerFlags(CLI::App* app, WorkerFlags* flags);
// Those of them that concern the exchange with chief and servers, not the computation.
void AddExchangeFlags(CLI::App* app, WorkerFlags* flags);

RetryOptions RetryOptionsFrom(const WorkerFlags& flags);

// One thread per core, with the cores shared evenly among the workers on this task's host; more
// threads than cores would only wait for one another.
int ComputeThreads(const ClusterSpec& cluster, int available_cores);

// The options of a client for a configuration: formats, depth, and whether input and output run in
// the background. They do at depth 2, and when a shard's part of the model is several messages, of
// which some can be sent before all gradients are complete.
ShardedParameterClient::Options TransferOptions(const v1::TrainConfig& train_config,
                                                absl::Span<const VariableSpec> variables,
                                                const Placement& placement);

// Names the servers of the shards at these addresses, which are the chief's: "ps-1"; without
// servers the task that is listed there, "worker-1", or the shard, "shard-1". A worker that knows
// as many of them uses its own addresses of the parameter servers instead.
std::vector<BulkServer> NameServers(const ShardLayout& layout, const ClusterSpec& cluster,
                                    const std::vector<std::string>& addresses);
// The same; `context` outlives it.
ServerNaming NamingOf(const RoleContext& context);

// Clients over gRPC of the servers that NameServers names; `context` outlives them. `own_shard`
// serves the shard whose home this process is (ShardLayout), and outlives the clients; null: it is
// none's.
ParameterClientFactory GrpcParameterClients(const RoleContext& context, const WorkerFlags& flags,
                                            BulkHandler* own_shard = nullptr);

// The devices of --device. A main opens them first, so that a program without its devices never
// joins a job. Errors are those of CreateDevices and ParsePrecision.
absl::StatusOr<std::unique_ptr<DeviceGroup>> OpenWorkerDevices(const WorkerFlags& flags,
                                                               const ClusterSpec& cluster);

// Opens the data, then works for `chief` until training is over. INVALID_ARGUMENT, NOT_FOUND,
// DATA_LOSS: the data; otherwise as Worker::Run.
absl::Status RunWorkerRole(const RoleContext& context, const WorkerFlags& flags,
                           DeviceGroup* devices, ChiefService* chief,
                           ParameterClientFactory make_client, StopSignal* stop);

// A connection to the chief: at the address that the cluster names, otherwise at the one that a
// parameter server returns once a chief has announced itself there. CANCELLED: stopped.
// UNAVAILABLE: no chief within --peer_timeout.
absl::StatusOr<std::unique_ptr<ChiefService>> ConnectToChief(const RoleContext& context,
                                                             const WorkerFlags& flags,
                                                             const StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_ROLE_H_
