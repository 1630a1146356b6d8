// The parameter server's calls, message in, message out; no transport. Callers in the same process
// use it directly.
#ifndef KEELSON_PS_SERVER_SERVICE_PARAMETER_HANDLER_H_
#define KEELSON_PS_SERVER_SERVICE_PARAMETER_HANDLER_H_

#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_pool.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "ps_server/service/chief_admission.h"
#include "ps_server/service/chief_record.h"
#include "ps_server/service/credit_ledger.h"
#include "ps_server/service/departure.h"
#include "ps_server/service/initialize_calls.h"
#include "ps_server/service/replica_calls.h"
#include "ps_server/service/round_waits.h"
#include "ps_server/service/served_shard.h"
#include "ps_server/service/server_figures.h"
#include "ps_server/service/snapshot_calls.h"
#include "ps_server/service/table_limits_log.h"
#include "ps_server/snapshots/snapshot_files.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// Thread-safe. Starts empty; Initialize makes the shard. The job state that a chief persists here
// (ChiefHeartbeat) outlives shards, but not the process.
class ParameterHandler : public ParameterControl, public BulkHandler {
 public:
  struct Options {
    uint64_t incarnation = 0;
    // Of the configuration that chiefs must have; none: any.
    std::optional<uint64_t> config_hash = std::nullopt;
    CreditLedger::Options credits = {};
    // The number of threads that share the commit of a synchronous round, and that read the rows of
    // a snapshot; at least 1.
    int commit_threads = 1;
    // Where Initialize and WriteSnapshot find and put snapshots; empty: they are refused.
    std::string model_dir = {};
    // Has that directory; null: the real file system, confined to it. Outlives the handler.
    FileSystem* file_system = nullptr;
    // How long a chief must be silent before another one takes its place (ChiefAdmission).
    absl::Duration chief_exclusive = absl::ZeroDuration();
    // Decides which chief's calls are taken, in a process with several handlers, whose chief is one
    // for all of them; null: the handler by itself. Outlives the handler.
    ChiefAdmission* chiefs = nullptr;
    // A shard that takes more (LeastBytesOf) is refused before anything is allocated.
    int64_t max_shard_bytes = std::numeric_limits<int64_t>::max();
    // Connects to hosts of shards, of which this server may be a replica; null: it is none.
    ReplicaCalls::Connect connect_host = nullptr;
  };

  // `end` is raised by Finish. Both outlive the handler.
  ParameterHandler(const Options& options, const Clock* clock, StopSignal* end);

  // The chief has said that the job is over.
  bool finished() const { return finished_; }

  // The shard that is here is a copy: another process serves it.
  bool replica() const { return replica_; }

  // The server was asked to stop: the chief is told, and nothing is applied after the next cut.
  void Leave() { shard_.Leave(); }
  // Applies nothing from now on, unless that would lose what no committed snapshot has. False: it
  // would.
  bool CloseIfSaved();
  // What this server knows of the chief's intentions.
  ChiefSign chief_sign() const;

  ServerFigures figures() const { return figures_.figures(); }

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  // INVALID_ARGUMENT: see bulk_calls.h and DecodeBulkRequest; the text starts with the call: "push:
  // variable dense/kernel, block 2: expected 1048576 bytes, found 1000 left".
  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override;
  bool MayAnswer(BulkMethod method, const ByteRope& request, std::function<void()> wake) override;
  absl::Status PrepareCut(const v1::PrepareCutRequest& request,
                          v1::PrepareCutResponse* response) override {
    return snapshots_.Prepare(request, response);
  }
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override;
  absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                              v1::ShardStatus* response) override;
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override;
  absl::Status ReplicateShard(const v1::ReplicateShardRequest& request,
                              v1::InitializeShardResponse* response) override;
  absl::Status ReplicateRound(const v1::ReplicateRoundRequest& request,
                              v1::ReplicateRoundResponse* response) override;
  absl::Status ReadShard(const v1::ReadShardRequest& request, ShardSink sink) override;
  absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) override;
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;

 private:
  // After it has returned, only rounds of this chief, which was admitted before, or of a later one
  // are committed: what the status says of rounds then stays true until this chief changes it.
  void AwaitCommitsOfOthers(uint64_t chief);
  absl::StatusOr<ByteRope> Serve(BulkMethod method, const ByteRope& message);
  absl::Status ServeCall(BulkMethod method, const BulkRequest& request,
                         const ServedShard::Shard& shard, ByteCursor payload,
                         BulkResponse* response, ValuePayload* values);
  absl::Status Commit(const v1::CommitRoundRequest& request, ShardStore* store)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mu_);
  void FillStatus(v1::ShardStatus* status);
  // The server leaves, and this shard (null: none) has what no committed snapshot has.
  bool Unsaved(const ServedShard::Pointer& shard) const;

  const Options options_;
  StopSignal* const end_;
  CreditLedger credits_;
  SnapshotFiles files_;

  std::atomic<bool> finished_{false};
  std::atomic<bool> chief_stopping_{false};
  // The shard is a replica: another process serves it, and sees to its snapshots.
  std::atomic<bool> replica_{false};
  ChiefAdmission own_chiefs_;  // unless Options::chiefs are there
  ChiefAdmission* const chiefs_;
  // The newest chief that has passed AwaitCommitsOfOthers; 0: none.
  std::atomic<uint64_t> attended_by_{0};
  FigureCounter figures_;
  ChiefRecord record_;
  RoundWaits waits_;
  ServedShard shard_;
  TableLimitsLog limits_log_;
  SnapshotCalls snapshots_;
  InitializeCalls initialize_;
  ReplicaCalls replicas_;

  // Held while a round is committed.
  Mutex commit_mu_;
  std::unique_ptr<ThreadPool> commit_pool_
      ABSL_GUARDED_BY(commit_mu_);  // made for the first commit
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_PARAMETER_HANDLER_H_
