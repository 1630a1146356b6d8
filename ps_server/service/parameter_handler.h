// The parameter server's calls, message in, message out; no transport. Callers in the same process
// use it directly.
#ifndef KEELSON_PS_SERVER_SERVICE_PARAMETER_HANDLER_H_
#define KEELSON_PS_SERVER_SERVICE_PARAMETER_HANDLER_H_

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_pool.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "ps_server/service/bulk_calls.h"
#include "ps_server/service/chief_admission.h"
#include "ps_server/service/chief_record.h"
#include "ps_server/service/credit_ledger.h"
#include "ps_server/service/departure.h"
#include "ps_server/service/member_table.h"
#include "ps_server/service/server_figures.h"
#include "ps_server/service/snapshot_calls.h"
#include "ps_server/snapshots/snapshot_files.h"
#include "ps_server/units/block_store.h"

namespace keelson {

// Thread-safe. Starts empty; Initialize makes the shard. The job state that a chief persists here
// (ChiefHeartbeat) outlives shards, but not the process.
class ParameterHandler : public ParameterControl, public BulkHandler {
 public:
  struct Options {
    uint64_t incarnation = 0;
    uint64_t config_hash = 0;
    CreditLedger::Options credits = {};
    // The number of threads that share the commit of a synchronous round; at least 1.
    int commit_threads = 1;
    // Where Initialize and WriteSnapshot find and put snapshots; empty: they are refused.
    std::string model_dir = {};
    // How long a chief must be silent before another one takes its place (ChiefAdmission).
    absl::Duration chief_exclusive = absl::ZeroDuration();
    // A shard that takes more (LeastBytesOf) is refused before anything is allocated.
    int64_t max_shard_bytes = std::numeric_limits<int64_t>::max();
  };

  // `end` is raised by Finish. Both outlive the handler.
  ParameterHandler(const Options& options, const Clock* clock, StopSignal* end)
      : options_(options),
        clock_(clock),
        end_(end),
        credits_(options.credits, clock),
        files_(options.model_dir, clock),
        chiefs_(clock, options.chief_exclusive),
        snapshots_(
            &files_, [this] { return CurrentStore(); }, &chiefs_, &figures_, clock) {}

  // The chief has said that the job is over.
  bool finished() const { return finished_; }

  // What this server knows of the chief's intentions.
  // The server was asked to stop: the chief is told, and nothing is applied after the next cut.
  void Leave();
  ChiefSign chief_sign() const;

  ServerFigures figures() const { return figures_.figures(); }

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  // INVALID_ARGUMENT: see bulk_calls.h and DecodeBulkRequest; the text starts with the call: "push:
  // variable dense/kernel, block 2: expected 1048576 bytes, found 1000 left".
  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override;
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
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;

 private:
  // A store and what identifies it. Immutable; calls in flight hold it while a new one replaces it.
  struct Shard {
    std::unique_ptr<BlockStore> store;
    uint64_t placement_fingerprint = 0;
    uint64_t store_id = 0;
    PushOptions push;
    int64_t first_step = 0;
  };
  // The number of a call that makes a shard, among all such calls.
  using Making = uint64_t;
  using FillStore =
      absl::FunctionRef<absl::StatusOr<std::unique_ptr<BlockStore>>(BlockStore::Options, Making)>;

  // The origin of a store: a request with the same origin needs no new store.
  struct Origin {
    uint64_t chief_incarnation = 0;
    uint64_t placement_fingerprint = 0;
    uint32_t shard = 0;
    std::optional<int64_t> restore_step;

    friend bool operator==(const Origin&, const Origin&) = default;
  };

  // FAILED_PRECONDITION: another configuration.
  absl::Status CheckConfig(const v1::InitializeShardRequest& request) const;
  absl::Status InitializeFrom(absl::string_view call, const v1::InitializeShardRequest& request,
                              FillStore fill, v1::InitializeShardResponse* response);
  // Drops the shard, for the call to make one; nothing: the one that is there is of that origin.
  // ABORTED: another chief has called.
  absl::StatusOr<std::optional<Making>> BeginShard(absl::string_view call,
                                                   const v1::RequestHeader& chief,
                                                   const Origin& origin);
  // Whether the shard is still this call's to make. ABORTED: another chief has called. UNAVAILABLE:
  // the same chief has called again.
  absl::Status CheckMaking(absl::string_view call, const v1::RequestHeader& chief, Making making)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes `store` the shard's, unless CheckMaking refuses that. On an error there is none.
  absl::Status EndShard(absl::string_view call, const v1::InitializeShardRequest& request,
                        const Origin& origin, Making making,
                        absl::StatusOr<std::unique_ptr<BlockStore>> store);
  // FAILED_PRECONDITION: it takes more than Options::max_shard_bytes.
  absl::Status CheckShardFits(const Placement& placement, size_t shard, size_t num_slots) const;
  absl::StatusOr<std::unique_ptr<BlockStore>> MakeStore(const v1::InitializeShardRequest& request,
                                                        Making making, FillStore fill);
  // The current shard. UNAVAILABLE: not initialised.
  absl::StatusOr<std::shared_ptr<const Shard>> CurrentShard() const;
  absl::StatusOr<std::shared_ptr<BlockStore>> CurrentStore() const;
  // The shard for a worker's request. UNAVAILABLE: not initialised, or the caller is no member yet.
  // ABORTED: made for another placement, or MembershipOver.
  absl::StatusOr<std::shared_ptr<const Shard>> ReadyShard(const BulkRequest& request);
  // After it has returned, only pushes of members are applied.
  void TakeMembers(uint64_t chief, const v1::MemberList& list);
  // After it has returned, only rounds of this chief, or of a later one, are committed: what the
  // status says of rounds then stays true until this chief changes it.
  void AwaitCommitsOfOthers(uint64_t chief);
  absl::StatusOr<ByteRope> Serve(BulkMethod method, const ByteRope& message);
  absl::Status ServeBlocks(BulkMethod method, const BulkRequest& request, const Shard& shard,
                           ByteCursor payload, BulkResponse* response, ValuePayload* values);
  void FillStatus(v1::ShardStatus* status);
  // The server leaves, and its shard has what no committed snapshot has.
  bool Unsaved() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Clock* const clock_;
  StopSignal* const end_;
  CreditLedger credits_;
  SnapshotFiles files_;

  std::atomic<bool> finished_{false};
  std::atomic<bool> chief_stopping_{false};
  std::atomic<bool> leaving_{false};
  ChiefAdmission chiefs_;
  // The newest chief whose heartbeat has passed AwaitCommitsOfOthers; 0: none.
  std::atomic<uint64_t> attended_by_{0};
  FigureCounter figures_;
  ChiefRecord record_;
  SnapshotCalls snapshots_;
  // The most entries that a request for the shard has in a repeated field.
  std::atomic<size_t> most_entries_{kMostEntries};

  // Held while a shard is made of initial values or of files, so that one is made so at a time.
  // Like the others it is not held while a peer is waited for.
  Mutex initialize_mu_;

  // Held until the shard knows what `members_` does.
  Mutex members_mu_;

  // Held while a round is committed.
  Mutex commit_mu_;
  std::unique_ptr<ThreadPool> commit_pool_
      ABSL_GUARDED_BY(commit_mu_);  // made for the first commit

  mutable Mutex mu_;
  v1::ShardStatus::State state_ ABSL_GUARDED_BY(mu_) = v1::ShardStatus::EMPTY;
  std::shared_ptr<const Shard> shard_ ABSL_GUARDED_BY(mu_);
  std::optional<Origin> origin_ ABSL_GUARDED_BY(mu_);  // of the shard; none without
  Making newest_making_ ABSL_GUARDED_BY(mu_) = 0;
  MemberTable members_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_PARAMETER_HANDLER_H_
