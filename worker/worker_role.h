// The worker's role as a main runs it: flags, device, data, and the worker itself.
#ifndef KEELSON_WORKER_WORKER_ROLE_H_
#define KEELSON_WORKER_WORKER_ROLE_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/stop_signal.h"
#include "core/client/chief_service.h"
#include "core/startup/role_program.h"
#include "worker/worker.h"

namespace keelson {

struct WorkerFlags {
  std::string device = "auto";
  int compute_threads = 0;  // 0: one per core
  int peer_timeout_seconds = 600;
};

void AddWorkerFlags(CLI::App* app, WorkerFlags* flags);

// Clients over gRPC. A worker that knows the servers by itself goes by its own addresses; else by
// those that the chief tells.
ParameterClientFactory GrpcParameterClients(const RoleContext& context, const WorkerFlags& flags,
                                            const StopSignal* stop);

// Opens data and device, then works for `chief` until training is over. INVALID_ARGUMENT,
// NOT_FOUND, DATA_LOSS: the data; otherwise as Worker::Run.
absl::Status RunWorkerRole(const RoleContext& context, const WorkerFlags& flags,
                           ChiefService* chief, ParameterClientFactory make_client,
                           StopSignal* stop);

// A connection to the chief: at the address that the cluster names, else at the one that a
// parameter server tells, once a chief has announced itself there.
// CANCELLED: stopped. UNAVAILABLE: no chief within --peer_timeout.
absl::StatusOr<std::unique_ptr<ChiefService>> ConnectToChief(const RoleContext& context,
                                                             const WorkerFlags& flags,
                                                             const StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_ROLE_H_
