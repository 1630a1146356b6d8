#include "ps_server/service/served_shard.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// A request may list so many entries more than the shard has blocks: its answer names the block
// that is listed twice, or is not there. Longer lists are refused unread.
constexpr size_t kEntriesToName = 1024;

absl::Status NotInitialized() { return absl::UnavailableError("the shard is not initialised yet"); }

}  // namespace

ServedShard::View ServedShard::view() const {
  MutexLock lock(&mu_);
  return {state_, shard_, enforced_epoch_, members_.size()};
}

absl::StatusOr<ServedShard::Pointer> ServedShard::Current(uint64_t store_id) const {
  MutexLock lock(&mu_);
  if (shard_ == nullptr) return NotInitialized();
  if (store_id != 0 && store_id != shard_->store_id) {
    return absl::UnavailableError("the shard is not the one that the chief knows");
  }
  return shard_;
}

absl::StatusOr<std::shared_ptr<ShardStore>> ServedShard::CurrentStore(uint64_t store_id) const {
  ASSIGN_OR_RETURN(const Pointer shard, Current(store_id));
  return std::shared_ptr<ShardStore>(shard, shard->store.get());
}

absl::StatusOr<ServedShard::Pointer> ServedShard::ReadyFor(const BulkRequest& request) const {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(members_.Check(request));
  if (shard_ == nullptr) return NotInitialized();
  if (request.placement_fingerprint != shard_->placement_fingerprint) {
    return absl::AbortedError("the request was made for another placement of the variables");
  }
  return shard_;
}

void ServedShard::TakeMembers(uint64_t chief, const v1::MemberList& list) {
  std::vector<uint64_t> members;
  Pointer shard;
  MutexLock taking(&members_mu_);
  {
    MutexLock lock(&mu_);
    if (!members_.Take(chief, list)) return;
    members = members_.Incarnations();
    shard = shard_;
  }
  // This waits for the pushes that were let in before.
  if (shard != nullptr) shard->store->SetMembers(std::move(members));
  MutexLock lock(&mu_);
  enforced_epoch_ = list.epoch();
}

void ServedShard::Leave() {
  MutexLock lock(&mu_);
  leaving_ = true;
  if (shard_ != nullptr) shard_->store->EndAtNextCut();
}

void ServedShard::Drop() {
  MutexLock lock(&mu_);
  DropLocked();
  state_ = v1::ShardStatus::EMPTY;
}

void ServedShard::DropLocked() {
  origin_.reset();
  shard_ = nullptr;
  ++newest_making_;
  dropped_();
}

absl::StatusOr<std::optional<ServedShard::Making>> ServedShard::Begin(
    absl::string_view call, const v1::RequestHeader& chief, const Origin& origin) {
  MutexLock lock(&mu_);
  // With the lock: whoever is admitted later also begins later.
  RETURN_IF_ERROR(chiefs_->Admit(call, chief));
  if (origin_ == origin) return std::nullopt;
  // The old shard is released before the new one is made: there may not be memory for both.
  DropLocked();
  state_ = v1::ShardStatus::INITIALIZING;
  return newest_making_;
}

absl::Status ServedShard::CheckMaking(absl::string_view call, const v1::RequestHeader& chief,
                                      Making making) const {
  MutexLock lock(&mu_);
  return CheckMakingLocked(call, chief, making);
}

absl::Status ServedShard::CheckMakingLocked(absl::string_view call, const v1::RequestHeader& chief,
                                            Making making) const {
  RETURN_IF_ERROR(chiefs_->Admit(call, chief));
  if (making == newest_making_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(call, ": a later call makes the shard"));
}

absl::Status ServedShard::End(absl::string_view call, const v1::InitializeShardRequest& request,
                              const Origin& origin, Making making,
                              absl::StatusOr<std::unique_ptr<ShardStore>> store) {
  MutexLock lock(&mu_);
  absl::Status status = CheckMakingLocked(call, request.header(), making);
  status.Update(store.status());
  if (!status.ok()) {
    if (making == newest_making_) state_ = v1::ShardStatus::EMPTY;
    return status;
  }
  if (request.has_committed_round()) (*store)->SkipRounds({request.committed_round(), 0});
  (*store)->SetMembers(members_.Incarnations());
  most_entries_ = (*store)->num_blocks() + kEntriesToName;
  const PushOptions push = {request.reject_non_finite(),
                            request.stale_gradients().scale_learning_rate()};
  if (leaving_) (*store)->EndAtNextCut();
  shard_ = std::make_shared<const Shard>(Shard{*std::move(store), request.placement_fingerprint(),
                                               RandomId(), request.config_hash(), push});
  origin_ = origin;
  state_ = v1::ShardStatus::READY;
  return absl::OkStatus();
}

}  // namespace keelson
