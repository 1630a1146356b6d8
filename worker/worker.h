// The worker: computes gradients on leased batches and pushes them.
#ifndef KEELSON_WORKER_WORKER_H_
#define KEELSON_WORKER_WORKER_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
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

// Makes the client for a model whose placement and servers the chief has told. `memory`, if any, is
// the model's own and outlives the client, which works on it.
using ParameterClientFactory = std::function<absl::StatusOr<std::unique_ptr<ParameterClient>>(
    const Placement& placement, const std::vector<std::string>& ps_addresses,
    std::optional<ParameterMemory> memory)>;

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

  // Joins the job, trains until the last step is done, leaves. A step: take a batch, load the
  // values that came with the answer to the last push, compute; each gradient is handed to the
  // client as soon as it is complete, or all of them at the end where they must be clipped first.
  // CANCELLED: `stop` was raised. UNAVAILABLE, DEADLINE_EXCEEDED: chief or servers were away for
  // longer than the retry options allow. FAILED_PRECONDITION: another configuration, or the
  // chief has given up. ALREADY_EXISTS: the task is held by a live process. INVALID_ARGUMENT: the
  // model cannot be built or is not the one on the servers.
  absl::Status Run();

 private:
  absl::Status RunJoined();
  // What the model lends to its client, so that neither copies: at depth 1 the memory that it
  // computes in, where that is the host's.
  std::optional<ParameterMemory> LentMemory(const Model& model) const;
  absl::Status TrainUntilDone(ParameterClient* client, Model* model);
  absl::Status TrainOnBatches(Batcher* batcher, ParameterClient* client, Model* model);
  absl::Status TrainStep(const PreparedBatch& prepared, FinishedStep step, ParameterClient* client,
                         Model* model);
  // Brings the newest values to the model: fetches them anew when those of the last push are old.
  absl::Status LoadValues(ParameterClient* client, Model* model);
  // False: the loss is not finite, and nothing is pushed.
  absl::StatusOr<bool> ComputeAndOffer(const PreparedBatch& prepared, FinishedStep* step,
                                       ParameterClient* client, Model* model);
  // Waits for the step that is still under way at depth 2.
  absl::Status Drain(ParameterClient* client);
  // Books a step that the servers have acknowledged, the oldest of those under way.
  void Acknowledge(const std::optional<PushResult>& pushed);

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
  // Given to the client and not acknowledged yet, the oldest first.
  std::deque<FinishedStep> under_way_;
  // When the values came that the model is going to use.
  absl::Duration values_from_ = -absl::InfiniteDuration();
};

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_H_
