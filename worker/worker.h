// The worker: computes gradients on leased batches and pushes them.
#ifndef KEELSON_WORKER_WORKER_H_
#define KEELSON_WORKER_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/grpc_parameter_client.h"
#include "core/client/services/chief_service.h"
#include "core/client/services/parameter_client.h"
#include "core/client/services/retry.h"
#include "core/cluster/membership_id.h"
#include "core/cluster/placement.h"
#include "core/cluster/task.h"
#include "core/data/dataset.h"
#include "core/data/stream/stream_dataset.h"
#include "core/device/device_group.h"
#include "core/model/model.h"
#include "keelson/v1/train_config.pb.h"
#include "worker/chief_session.h"
#include "worker/gradient_histograms.h"
#include "worker/progress.h"
#include "worker/server_follower.h"

namespace keelson {

// The arguments for a client: the model, with the placement and servers from the chief, and a
// membership of the worker.
struct ParameterClientRequest {
  Placement placement;
  std::vector<std::string> ps_addresses;  // by shard
  MembershipId membership;
  uint64_t member_epoch = 0;  // v1::RequestHeader
  // The memory that the client works on, if not its own: the model's, or the devices' wire memory.
  // Outlives the client.
  std::optional<ParameterMemory> memory;
  // Ends every wait of the client, and outlives it.
  const StopSignal* stop = nullptr;
};
using ParameterClientFactory =
    std::function<absl::StatusOr<std::unique_ptr<ParameterClient>>(ParameterClientRequest)>;

struct WorkerOptions {
  Task self;
  std::string peer;
  v1::TrainConfig config;  // final
  uint64_t config_hash = 0;
  RetryOptions retry;
  absl::Duration step_bound;  // RegisterRequest
  // The dataset, if it is a stream; outlives the worker.
  StreamDataset* stream = nullptr;
  // Names the servers of shards that have moved.
  ServerNaming servers_at = ServersAt;
  // Returns a random identity for a membership.
  std::function<MembershipId()> new_membership = RandomMembershipId;
};

// Runs on the thread that calls Run, with a thread for batches and one for heartbeats.
class Worker {
 public:
  // All outlive the worker. The devices are used by Run's thread only.
  Worker(WorkerOptions options, ChiefService* chief, ParameterClientFactory make_client,
         DeviceGroup* devices, const Dataset* dataset, const Clock* clock, StopSignal* stop);

  // Joins the job, trains until the last step is done, leaves. When its membership ends earlier
  // (its lease has passed, or a server refuses it) the work under way is dropped, and the worker
  // joins again as a new member. CANCELLED: `stop` was raised. UNAVAILABLE,
  // DEADLINE_EXCEEDED: chief or servers were away for longer than the retry options allow. ABORTED:
  // no membership has lasted for a step for that long. FAILED_PRECONDITION: another configuration,
  // the chief has given up, or a device has too little memory. ALREADY_EXISTS: a live process holds
  // the task. INVALID_ARGUMENT: the model cannot be built or is not the one on the servers.
  // INTERNAL: a device failed.
  absl::Status Run();

  const Progress& progress() const { return progress_; }

 private:
  // Trains for one membership. ABORTED: the membership is over.
  absl::Status RunMembership(Model* model);
  absl::Status RunJoined(ChiefSession* session, const MembershipId& membership, Model* model);
  // Returns the memory that saves most copies: the devices' wire memory where the model uses that;
  // at depth 1 the memory in which the model computes; otherwise nothing, and the client uses its
  // own.
  absl::StatusOr<std::optional<ParameterMemory>> MemoryFor(const Placement& placement,
                                                           Model* model);
  absl::Status TrainUntilDone(ChiefSession* session, ParameterClient* client, Model* model);
  // Null if the configuration wants no histograms.
  std::unique_ptr<GradientHistograms> MakeHistograms(const Model& model) const;

  const WorkerOptions options_;
  ChiefService* const chief_;
  const ParameterClientFactory make_client_;
  DeviceGroup* const devices_;
  const Dataset* const dataset_;
  const Clock* const clock_;
  StopSignal* const stop_;

  Progress progress_;
  // Histograms of worker 0, for all memberships; null where none are wanted.
  std::unique_ptr<GradientHistograms> histograms_;
  // Finished steps of all memberships.
  int64_t finished_steps_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_WORKER_H_
