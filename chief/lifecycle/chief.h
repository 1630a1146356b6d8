// The chief: owns what its job consists of, and runs the job through its phases.
#ifndef KEELSON_CHIEF_LIFECYCLE_CHIEF_H_
#define KEELSON_CHIEF_LIFECYCLE_CHIEF_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/coordination/coordinator.h"
#include "chief/lifecycle/cold_start.h"
#include "chief/lifecycle/job_ending.h"
#include "chief/lifecycle/job_snapshots.h"
#include "chief/lifecycle/job_start.h"
#include "chief/lifecycle/leadership.h"
#include "chief/lifecycle/lease_watch.h"
#include "chief/lifecycle/membership_announcer.h"
#include "chief/lifecycle/round_committer.h"
#include "chief/lifecycle/stream_watch.h"
#include "chief/lifecycle/training_phase.h"
#include "chief/reporting/reporter.h"
#include "chief/servers/server_group.h"
#include "chief/servers/server_supervisor.h"
#include "chief/servers/shard_storage.h"
#include "chief/servers/snapshotter.h"
#include "chief/service/chief_handler.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/directory_owner.h"
#include "core/data/stream/stream_directory.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Which side moves the shards' parts of a snapshot to and from the model directory (ShardStorage).
enum class CheckpointWriter { kServers, kChief };

struct ChiefOptions {
  Task self;
  uint64_t incarnation = 0;
  v1::TrainConfig config;  // final, with a model directory
  uint64_t config_hash = 0;
  std::vector<VariableSpec> variables;
  std::vector<TableSpec> tables;
  int64_t train_records = 0;  // kStreamRecords of a stream
  // Where a stream's files come; null: the data is no stream.
  std::shared_ptr<const StreamDirectory> stream = nullptr;
  // An evaluator belongs to the job: the end waits for it even if it has not registered yet.
  bool expects_evaluator = false;
  // Workers and evaluators that the cluster's description names; only displayed.
  std::vector<Task> expected_members;
  // Shards that may be served at several places (ServerCalls::Server::others) have replicas there,
  // while the job is synchronous.
  bool replicas = false;
  // The chief's own "host:port", announced to the servers. May be empty.
  std::string address;
  // "host:pid" of this process; only displayed.
  std::string peer;
  // How long servers may take to appear where no job runs yet, and the storage to work.
  absl::Duration startup_timeout = absl::Minutes(10);
  absl::Duration lease = absl::Seconds(10);
  CheckpointWriter checkpoint_writer = CheckpointWriter::kServers;
  // A snapshot before the chief or a server leaves waits this long for the steps under way.
  absl::Duration step_wait = absl::Seconds(5);
  // Calls about files are cancelled when they have not ended this long after `stop` was raised.
  absl::Duration leave_within = absl::Seconds(100);
  // The pause after a failed snapshot; it grows to a minute.
  absl::Duration snapshot_retry = absl::Seconds(1);
  ServerSupervisor::Pauses supervision;
  // How long files of a snapshot that are missing at the start are waited for.
  absl::Duration missing_patience = absl::Minutes(1);
  // Its right to write to the model directory, which it gives back at its end; null: nobody else
  // writes there.
  std::shared_ptr<DirectoryOwner> owner;
  // Holds the model directory; outlives the chief.
  FileSystem* file_system = FileSystem::Real();
};

// Owns the job's state. Serve service() to the members, then call Run once.
//
// A chief that finds its job running at the servers adopts it (job_start.h); otherwise the servers
// start over from the newest snapshot, or from initial values (cold_start.h). While the job runs, a
// model directory that cannot be written does not stop it (training_phase.h): that is logged with
// each try. The job is done when its last snapshot and its marker are written (job_ending.h).
class Chief {
 public:
  // `servers[s]` will hold shard s. Services, clock and `stop` outlive the chief.
  // Errors: the model directory cannot be written; the schedule or the mode makes no sense.
  static absl::StatusOr<std::unique_ptr<Chief>> Create(ChiefOptions options,
                                                       std::vector<ServerGroup::Server> servers,
                                                       const Clock* clock, StopSignal* stop);

  // Thread-safe, valid as long as the chief.
  ChiefHandler* service() { return &handler_; }
  Coordinator* coordinator() { return &coordinator_; }
  // Thread-safe. The process of this task is reached there from now on, where the servers' services
  // call it too; members are told. Empty: nobody knows where.
  void NoteAddress(const Task& host, const std::string& address);
  // Thread-safe.
  SnapshotFigures snapshot_figures() const { return snapshotter_.figures(); }

  // Runs the job from waiting for the servers to the DONE marker. After an error that no restart of
  // the chief mends (all but UNAVAILABLE and CANCELLED) the job's phase is FAILED, and members have
  // had time to learn it. CANCELLED: `stop` was raised; a snapshot has been tried. ALREADY_EXISTS:
  // a newer chief has taken this one's place, or its model directory; the members are left to it.
  // DEADLINE_EXCEEDED: a server never appeared, and no other held a running job. DATA_LOSS: no
  // snapshot of several is usable. INVALID_ARGUMENT: the loss is not finite, or training has
  // diverged; a snapshot does not fit the model. FAILED_PRECONDITION: a server has another
  // configuration. Of a stream also StreamWatch::status().
  absl::Status Run();

 private:
  Chief(ChiefOptions options, std::vector<ServerGroup::Server> servers, int64_t max_steps,
        const ConsistencyMode& mode, const Clock* clock, StopSignal* stop);

  // As the servers have it, whose schedule may end with the job.
  double LearningRateAt(int64_t step) const;
  Reporter::Options ReporterOptions();
  absl::Status RunJob();

  // Writes what the run is to the model directory.
  void DescribeRun();
  // Writes reports until helpers_stop_.
  void RunReports();

  ServerSupervisor::Job SupervisedJob();
  // Once training has begun, tells the members where the shards are now.
  void TellAddresses();
  // A shard is served elsewhere from now on (ServerSupervisor::Job).
  void NoteMoved(const std::optional<Task>& lost);

  const ChiefOptions options_;
  const int64_t max_steps_;
  const ModelLocation model_;
  // Raised from outside, or when another chief has taken the place.
  StopSignal stop_;
  Leadership leadership_;

  CheckpointDirectory directory_;
  const std::unique_ptr<ShardStorage> storage_;
  Coordinator coordinator_;
  ChiefHandler handler_;
  ServerGroup servers_;
  Snapshotter snapshotter_;
  JobSnapshots snapshots_;
  LeaseWatch leases_;
  RoundCommitter rounds_;
  MembershipAnnouncer announcer_;
  ServerSupervisor supervisor_;
  ColdStart cold_start_;
  JobStart start_;
  StreamWatch stream_;
  TrainingPhase training_;
  JobEnding ending_;
  std::unique_ptr<Reporter> reporter_;
  StopSignal helpers_stop_;

  Mutex addresses_mu_;  // held while the members are told addresses
  bool begun_ ABSL_GUARDED_BY(addresses_mu_) = false;

  // Temporary files that were there before this chief.
  std::vector<std::string> leftovers_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_CHIEF_H_
