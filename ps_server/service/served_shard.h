// The shard that a server serves: the state that it is in, who may push to it, and how a new one
// takes its place.
#ifndef KEELSON_PS_SERVER_SERVICE_SERVED_SHARD_H_
#define KEELSON_PS_SERVER_SERVICE_SERVED_SHARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "keelson/v1/parameter_service.pb.h"
#include "ps_server/service/bulk_calls.h"
#include "ps_server/service/chief_admission.h"
#include "ps_server/service/member_table.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// Thread-safe. There is no shard until one is made by Begin and End; members are known without one,
// too.
class ServedShard {
 public:
  // A store and what identifies it. Immutable; calls in flight hold it while a new one replaces it.
  struct Shard {
    std::unique_ptr<ShardStore> store;
    uint64_t placement_fingerprint = 0;
    uint64_t store_id = 0;
    uint64_t config_hash = 0;  // of the chief that had it made
    PushOptions push;
  };
  using Pointer = std::shared_ptr<const Shard>;

  // The origin of a store: a request with the same origin needs no new store.
  struct Origin {
    uint64_t chief_incarnation = 0;
    uint64_t placement_fingerprint = 0;
    uint32_t shard = 0;
    std::optional<int64_t> restore_step;
    // Of a copy of another server's shard: a random number, for each copy is of another instant.
    uint64_t copy = 0;

    friend bool operator==(const Origin&, const Origin&) = default;
  };

  // The number of a call that makes a shard, among all such calls.
  using Making = uint64_t;

  // All of one instant.
  struct View {
    v1::ShardStatus::State state = v1::ShardStatus::EMPTY;
    Pointer shard;  // null: none
    // Of the newest TakeMembers that has returned: only pushes of these members are applied.
    uint64_t member_epoch = 0;
    size_t members = 0;
  };

  // `dropped` is called when a shard gives way to a new one, before that is begun, or is dropped;
  // it must not call this. `chiefs` outlives this.
  ServedShard(ChiefAdmission* chiefs, std::function<void()> dropped)
      : chiefs_(chiefs), dropped_(std::move(dropped)) {}

  // ---- The shard that is there.

  View view() const;
  // UNAVAILABLE: not initialised, or its store is not the one with this id; 0: any.
  absl::StatusOr<Pointer> Current(uint64_t store_id = 0) const;
  absl::StatusOr<std::shared_ptr<ShardStore>> CurrentStore(uint64_t store_id = 0) const;
  // The shard for a worker's request. UNAVAILABLE: not initialised, or the caller is no member yet.
  // ABORTED: made for another placement, or MembershipOver.
  absl::StatusOr<Pointer> ReadyFor(const BulkRequest& request) const;
  // The most entries that a request for the shard has in a repeated field.
  size_t most_entries() const { return most_entries_; }

  // After it has returned, only pushes of members are applied.
  void TakeMembers(uint64_t chief, const v1::MemberList& list);

  // Nothing is applied after the next cut: of this shard, and of those that follow it.
  void Leave();
  bool leaving() const { return leaving_; }

  // There is no shard any more; a call that makes one is refused.
  void Drop();

  // ---- A new shard takes its place. `call` begins the texts of errors.

  // Drops the shard, for the call to make one; nothing: the one that is there is of that origin.
  // ABORTED: another chief has called.
  absl::StatusOr<std::optional<Making>> Begin(absl::string_view call,
                                              const v1::RequestHeader& chief, const Origin& origin);
  // Whether the shard is still this call's to make. ABORTED: another chief has called. UNAVAILABLE:
  // the same chief has called again.
  absl::Status CheckMaking(absl::string_view call, const v1::RequestHeader& chief,
                           Making making) const;
  // Makes `store` the shard's, unless CheckMaking refuses that. On an error there is none.
  absl::Status End(absl::string_view call, const v1::InitializeShardRequest& request,
                   const Origin& origin, Making making,
                   absl::StatusOr<std::unique_ptr<ShardStore>> store);

 private:
  void DropLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckMakingLocked(absl::string_view call, const v1::RequestHeader& chief,
                                 Making making) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  ChiefAdmission* const chiefs_;
  const std::function<void()> dropped_;

  std::atomic<bool> leaving_{false};
  std::atomic<size_t> most_entries_{kMostEntries};

  // Held until the shard knows what `members_` does.
  Mutex members_mu_;

  mutable Mutex mu_;
  v1::ShardStatus::State state_ ABSL_GUARDED_BY(mu_) = v1::ShardStatus::EMPTY;
  Pointer shard_ ABSL_GUARDED_BY(mu_);
  std::optional<Origin> origin_ ABSL_GUARDED_BY(mu_);  // of the shard; none without
  Making newest_making_ ABSL_GUARDED_BY(mu_) = 0;
  MemberTable members_ ABSL_GUARDED_BY(mu_);
  uint64_t enforced_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // View
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_SERVED_SHARD_H_
