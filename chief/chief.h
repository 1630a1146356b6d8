// The chief: forms the job, starts or continues training, takes snapshots, ends it.
#ifndef KEELSON_CHIEF_CHIEF_H_
#define KEELSON_CHIEF_CHIEF_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/chief_handler.h"
#include "chief/coordinator.h"
#include "chief/reporter.h"
#include "chief/server_group.h"
#include "chief/snapshotter.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct ChiefOptions {
  Task self;
  uint64_t incarnation = 0;
  v1::TrainConfig config;  // final, with a model directory
  uint64_t config_hash = 0;
  std::vector<VariableSpec> variables;
  int64_t train_records = 0;
  // An evaluator belongs to the job: the end waits for it even if it has not been heard of yet.
  bool expects_evaluator = false;
  // The chief's own "host:port", announced to the servers. May be empty.
  std::string address;
  absl::Duration startup_timeout = absl::Minutes(10);
  absl::Duration lease = absl::Seconds(10);
  // A snapshot that failed is tried again after this.
  absl::Duration snapshot_retry = absl::Seconds(10);
};

// Owns the job's state. Serve service() to the members, then call Run once.
class Chief {
 public:
  // `servers[s]` will hold shard s. Services, clock and `stop` outlive the chief.
  // Errors: the model directory cannot be written; the schedule makes no sense.
  static absl::StatusOr<std::unique_ptr<Chief>> Create(ChiefOptions options,
                                                       std::vector<ServerGroup::Server> servers,
                                                       const Clock* clock, const StopSignal* stop);

  // Thread-safe, valid as long as the chief.
  ChiefService* service() { return &handler_; }
  Coordinator* coordinator() { return &coordinator_; }

  // From waiting for the servers to the DONE marker. On an error the job's phase is FAILED and
  // the members have been given time to hear of it.
  // CANCELLED: `stop` was raised; a snapshot has been written.
  // DEADLINE_EXCEEDED: a server never appeared. DATA_LOSS: no snapshot of several is usable.
  // INVALID_ARGUMENT: the loss is not finite; a snapshot does not fit the model.
  // FAILED_PRECONDITION: a server has another configuration.
  absl::Status Run();

 private:
  Chief(ChiefOptions options, std::vector<ServerGroup::Server> servers, int64_t max_steps,
        const Clock* clock, const StopSignal* stop);

  absl::Status RunJob();
  absl::Status StartOrRestore();
  absl::Status Train();
  absl::Status WriteSnapshot(const v1::JobState& state);
  absl::Status FinishJob();
  void AwaitFinalEvaluation(int64_t step);
  // Loops of the two helper threads: leases and reports; restarted servers.
  void KeepHouse();
  void SuperviseServers();
  v1::InitializeShardRequest InitializeRequest(const Placement& placement) const;
  int64_t NextSaveStep(int64_t saved_step) const;
  bool SaveDue(int64_t step, int64_t saved_step, absl::Duration saved_at) const;

  const ChiefOptions options_;
  const int64_t max_steps_;
  const std::vector<std::string> ps_addresses_;
  const Clock* const clock_;
  const StopSignal* const stop_;

  CheckpointDirectory directory_;
  Coordinator coordinator_;
  ChiefHandler handler_;
  ServerGroup servers_;
  Snapshotter snapshotter_;
  std::unique_ptr<Reporter> reporter_;
  StopSignal helpers_stop_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_CHIEF_H_
