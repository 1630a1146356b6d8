// The worker: computes gradients on leased batches and pushes them.
#ifndef KEELSON_WORKER_WORKER_H_
#define KEELSON_WORKER_WORKER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/chief_service.h"
#include "core/client/parameter_client.h"
#include "core/client/retry.h"
#include "core/cluster/placement.h"
#include "core/cluster/task.h"
#include "core/data/batcher.h"
#include "core/data/dataset.h"
#include "core/device/device.h"
#include "core/model/model.h"
#include "keelson/v1/train_config.pb.h"
#include "worker/chief_session.h"
#include "worker/progress.h"

namespace keelson {

// Makes the client for a model whose placement and servers the chief has told.
using ParameterClientFactory = std::function<absl::StatusOr<std::unique_ptr<ParameterClient>>(
    const Placement& placement, const std::vector<std::string>& ps_addresses)>;

struct WorkerOptions {
  Task self;
  uint64_t incarnation = 0;
  std::string peer;
  v1::TrainConfig config;  // final
  uint64_t config_hash = 0;
  RetryOptions retry;
};

// Lives on the thread that calls Run, with a thread for batches and one for heartbeats.
class Worker {
 public:
  // All outlive the worker. `device` is used by Run's thread only.
  Worker(WorkerOptions options, ChiefService* chief, ParameterClientFactory make_client,
         Device* device, const Dataset* dataset, const Clock* clock, StopSignal* stop);

  // Joins the job, trains until the last step is done, leaves. Steps: take a batch, pull, compute,
  // clip, push.
  // CANCELLED: `stop` was raised. UNAVAILABLE, DEADLINE_EXCEEDED: chief or servers were away for
  // longer than the retry options allow. FAILED_PRECONDITION: another configuration, or the
  // chief has given up. ALREADY_EXISTS: the task is held by a live process. INVALID_ARGUMENT: the
  // model cannot be built or is not the one on the servers.
  absl::Status Run();

 private:
  absl::Status RunJoined();
  absl::Status TrainUntilDone(ParameterClient* client, Model* model);
  absl::Status TrainStep(const PreparedBatch& prepared, absl::Duration input_wait,
                         ParameterClient* client, Model* model);
  absl::Status LoadValues(const ParameterClient& client, Model* model);
  void ClipGradients();

  const WorkerOptions options_;
  ChiefService* const chief_;
  const ParameterClientFactory make_client_;
  Device* const device_;
  const Dataset* const dataset_;
  const Clock* const clock_;
  // Also raised when training ends on an error, to end the wait for work.
  StopSignal stop_;

  Progress progress_;
  ChiefSession session_;
  std::vector<Tensor> gradients_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_H_
