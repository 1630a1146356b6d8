// The worker's role as a main runs it: flags, devices, data, and the worker itself.
#ifndef KEELSON_WORKER_WORKER_ROLE_H_
#define KEELSON_WORKER_WORKER_ROLE_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/stop_signal.h"
#include "core/client/grpc_parameter_client.h"
#include "core/client/services/chief_service.h"
#include "core/client/sharded_parameter_client.h"
#include "core/device/device_group.h"
#include "core/startup/role_program.h"
#include "worker/worker.h"

namespace keelson {

struct WorkerFlags {
  std::string device = "auto";        // see CreateDevices
  std::string precision = "float32";  // see ParsePrecision
  int compute_threads = 0;            // 0: see ComputeThreads
  int peer_timeout_seconds = 600;
  BulkConnectionOptions bulk;
};

void AddWorkerFlags(CLI::App* app, WorkerFlags* flags);

// One thread per core, the cores shared evenly among the workers with this task's host: threads
// beyond the cores would wait for one another in turns.
int ComputeThreads(const ClusterSpec& cluster, int available_cores);

// What a configuration says of a client: formats, depth, and input and output in the background
// where there is something to gain: at depth 2, or when a shard's part of the model is several
// messages, of which some can leave before the gradients are complete.
ShardedParameterClient::Options TransferOptions(const v1::TransferConfig& config,
                                                absl::Span<const VariableSpec> variables,
                                                const Placement& placement);

// Clients over gRPC; `context` outlives them. A worker that knows the servers by itself goes by its
// own addresses; else by those that the chief tells.
ParameterClientFactory GrpcParameterClients(const RoleContext& context, const WorkerFlags& flags);

// The devices of --device. A main opens them before all else, so that a program without them takes
// part in nothing. Fails as CreateDevices and ParsePrecision do.
absl::StatusOr<std::unique_ptr<DeviceGroup>> OpenWorkerDevices(const WorkerFlags& flags,
                                                               const ClusterSpec& cluster);

// Opens the data, then works for `chief` until training is over. INVALID_ARGUMENT, NOT_FOUND,
// DATA_LOSS: the data; otherwise as Worker::Run.
absl::Status RunWorkerRole(const RoleContext& context, const WorkerFlags& flags,
                           DeviceGroup* devices, ChiefService* chief,
                           ParameterClientFactory make_client, StopSignal* stop);

// A connection to the chief: at the address that the cluster names, else at the one that a
// parameter server tells, once a chief has announced itself there.
// CANCELLED: stopped. UNAVAILABLE: no chief within --peer_timeout.
absl::StatusOr<std::unique_ptr<ChiefService>> ConnectToChief(const RoleContext& context,
                                                             const WorkerFlags& flags,
                                                             const StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_ROLE_H_
