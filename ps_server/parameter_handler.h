// The parameter server's calls, message in, message out; no transport. Callers in the same process
// use it directly.
#ifndef KEELSON_PS_SERVER_PARAMETER_HANDLER_H_
#define KEELSON_PS_SERVER_PARAMETER_HANDLER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/client/parameter_service.h"
#include "ps_server/block_store.h"
#include "ps_server/bulk_calls.h"
#include "ps_server/credit_ledger.h"

namespace keelson {

// Thread-safe. Starts empty; Initialize makes the shard.
class ParameterHandler : public ParameterService {
 public:
  struct Options {
    uint64_t incarnation = 0;
    uint64_t config_hash = 0;
    CreditLedger::Options credits = {};
  };

  // `end` is raised by Finish. Both outlive the handler.
  ParameterHandler(const Options& options, const Clock* clock, StopSignal* end)
      : options_(options), clock_(clock), end_(end), credits_(options.credits, clock) {}

  // The chief has said that the job is over.
  bool finished() const { return finished_; }

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  // INVALID_ARGUMENT: bulk_calls.h and DecodeBulkRequest say which; the text starts with the call:
  // "push: variable dense/kernel, block 2: expected 1048576 bytes, found 1000 left".
  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override;
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;

 private:
  // A store with what tells it from others. Immutable; calls in flight keep it while a new one
  // takes its place.
  struct Shard {
    std::unique_ptr<BlockStore> store;
    uint64_t placement_fingerprint = 0;
    uint64_t store_id = 0;
    PushOptions push;
  };

  // What a store was made from: the same again needs no new store.
  struct Origin {
    uint64_t chief_incarnation = 0;
    uint64_t placement_fingerprint = 0;
    uint32_t shard = 0;
    std::string restore_prefix;

    friend bool operator==(const Origin&, const Origin&) = default;
  };

  // ABORTED: another chief has taken the caller's place.
  absl::Status AdmitChief(uint64_t incarnation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(initialize_mu_);
  // Replaces the store. On an error there is none.
  absl::Status StartOver(const v1::InitializeShardRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(initialize_mu_);
  absl::StatusOr<std::unique_ptr<BlockStore>> MakeStore(const v1::InitializeShardRequest& request);
  // UNAVAILABLE: not initialised. ABORTED: made for another placement.
  absl::StatusOr<std::shared_ptr<const Shard>> ReadyShard(uint64_t placement_fingerprint) const;
  absl::StatusOr<ByteRope> Serve(BulkMethod method, const ByteRope& message);
  void FillStatus(v1::ShardStatus* status);

  const Options options_;
  const Clock* const clock_;
  StopSignal* const end_;
  CreditLedger credits_;

  std::atomic<bool> finished_{false};
  std::atomic<int64_t> pushed_bytes_{0};
  std::atomic<int64_t> pulled_bytes_{0};
  std::atomic<int64_t> duplicate_blocks_{0};

  // Held while a store is made, so that one is made at a time.
  Mutex initialize_mu_;
  std::optional<Origin> origin_ ABSL_GUARDED_BY(initialize_mu_);   // of the store; none without
  std::optional<uint64_t> chief_ ABSL_GUARDED_BY(initialize_mu_);  // incarnation of the newest
  std::set<uint64_t> replaced_chiefs_ ABSL_GUARDED_BY(initialize_mu_);

  mutable Mutex mu_;
  v1::ShardStatus::State state_ ABSL_GUARDED_BY(mu_) = v1::ShardStatus::EMPTY;
  std::shared_ptr<const Shard> shard_ ABSL_GUARDED_BY(mu_);
  std::string chief_address_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_PARAMETER_HANDLER_H_
