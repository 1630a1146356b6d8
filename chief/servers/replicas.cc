#include "chief/servers/replicas.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// The age of a shard's state: the newer one of two states has the greater pair.
std::pair<int64_t, int64_t> Age(const v1::ShardStatus& status) {
  return {status.committed_round(), status.shard_step()};
}

}  // namespace

Replicas::Replicas(ServerCalls* calls)
    : calls_(calls), pool_(static_cast<int>(calls->size()) - 1), copies_(calls->size()) {}

Replicas::Copy Replicas::copy(size_t s) const {
  MutexLock lock(&mu_);
  return copies_[s];
}

size_t Replicas::Exchange(size_t s, const Copy& copy) {
  MutexLock lock(&mu_);
  return std::exchange(copies_[s], copy).place;
}

bool Replicas::HasStore(size_t s, size_t place, uint64_t store_id) const {
  v1::ShardStatus status;
  return calls_->place(s, place).service->GetStatus({}, &status).ok() &&
         status.state() == v1::ShardStatus::READY && status.store_id() == store_id;
}

absl::Status Replicas::Fetch(const v1::CommitRoundRequest& round) {
  std::vector<size_t> shards;
  for (size_t s = 0; s < calls_->size(); ++s) {
    if (Has(s)) shards.push_back(s);
  }
  std::vector<absl::Status> statuses(shards.size());
  pool_.RunAll(shards.size(), [&](size_t i) {
    statuses[i] = calls_->Named(shards[i], FetchAt(shards[i], round));
  });
  return ServerCalls::FirstError(statuses);
}

absl::Status Replicas::FetchAt(size_t s, const v1::CommitRoundRequest& round) {
  const Copy replica = copy(s);
  if (replica.place == kNowhere) return absl::OkStatus();
  v1::ReplicateRoundRequest request;
  *request.mutable_header() = calls_->Header();
  request.set_from(calls_->address(s));
  request.set_round(round.round());
  request.set_attempt(round.attempt());
  request.set_contributions(round.contributions());
  request.set_store_id(calls_->contacts().store_id(s));
  request.set_replica_store_id(replica.store_id);
  v1::ReplicateRoundResponse response;
  const absl::Status fetched =
      calls_->place(s, replica.place).service->ReplicateRound(request, &response);
  if (fetched.ok() || absl::IsAborted(fetched)) return fetched;
  // Whose fault it is, the shard itself knows.
  v1::CommitRoundRequest ask = round;
  ask.set_only_ask(true);
  ask.set_store_id(calls_->contacts().store_id(s));
  v1::CommitRoundResponse answer;
  RETURN_IF_ERROR(calls_->at(s).service->CommitRound(ask, &answer));
  GiveUp(s, fetched);
  return absl::OkStatus();
}

absl::Status Replicas::Commit(size_t s, const v1::CommitRoundRequest& round) {
  const Copy replica = copy(s);
  if (replica.place == kNowhere) return absl::OkStatus();
  v1::CommitRoundRequest request = round;
  request.set_store_id(replica.store_id);
  v1::CommitRoundResponse response;
  return calls_->place(s, replica.place).service->CommitRound(request, &response);
}

size_t Replicas::GiveUp(size_t s, const absl::Status& why) {
  const size_t replica = Exchange(s, Copy());
  if (replica != kNowhere) {
    LogWarning(calls_->name(s), " is without its replica at ", calls_->place(s, replica).name, ": ",
               why.message());
  }
  return replica;
}

absl::Status Replicas::Make(size_t s, size_t place, const v1::InitializeShardRequest& start) {
  const ServerCalls::Server& server = calls_->place(s, place);
  v1::ReplicateShardRequest request;
  *request.mutable_start() = start;
  request.set_from(calls_->address(s));
  request.set_store_id(calls_->contacts().store_id(s));
  v1::InitializeShardResponse response;
  RETURN_IF_ERROR(server.service->ReplicateShard(request, &response));
  const size_t before = Exchange(s, {place, response.status().store_id()});
  if (before != kNowhere && before != place) DropAt(s, before);
  return absl::OkStatus();
}

absl::Status Replicas::Move(size_t s, bool both_equal, v1::ShardStatus* status) {
  const Copy replica = copy(s);
  if (replica.place == kNowhere) {
    return absl::UnavailableError(absl::StrCat(calls_->name(s), " has no replica"));
  }
  RETURN_IF_ERROR(calls_->place(s, replica.place).service->GetStatus({}, status));
  if (status->state() != v1::ShardStatus::READY || status->store_id() != replica.store_id) {
    GiveUp(s, absl::UnavailableError("it has been restarted"));
    return absl::UnavailableError(absl::StrCat(calls_->name(s), " has lost its replica"));
  }
  // Who commits a round finds the replica, or that the shard is served there.
  MutexLock lock(&mu_);
  if (copies_[s].place != replica.place || copies_[s].store_id != replica.store_id) {
    return absl::UnavailableError(
        absl::StrCat(calls_->name(s), " went on without its replica, which did not answer"));
  }
  copies_[s] = {};
  if (both_equal) copies_[s] = {calls_->serving(s), calls_->contacts().store_id(s)};
  calls_->Serve(s, replica.place);
  return absl::OkStatus();
}

void Replicas::DropAt(size_t s, size_t place) {
  v1::FinishShardRequest request;
  *request.mutable_header() = calls_->Header();
  request.set_moved(true);
  v1::FinishShardResponse response;
  calls_->place(s, place).service->Finish(request, &response).IgnoreError();
}

std::vector<size_t> Replicas::ReplicasAt(const std::string& address) const {
  std::vector<size_t> shards;
  for (size_t s = 0; s < calls_->size(); ++s) {
    const size_t replica = at(s);
    if (replica == kNowhere || !calls_->contacts().Serves(s)) continue;
    if (calls_->AddressOf(calls_->place(s, replica)) == address) shards.push_back(s);
  }
  return shards;
}

void Replicas::NoteLost(const std::string& address) {
  for (const size_t s : ReplicasAt(address)) {
    GiveUp(s, absl::UnavailableError("its host is lost"));
  }
}

void Replicas::NoteRestarted(const std::string& address) {
  for (const size_t s : ReplicasAt(address)) {
    const Copy replica = copy(s);
    const bool has_it = replica.place != kNowhere && HasStore(s, replica.place, replica.store_id);
    if (!has_it) GiveUp(s, absl::UnavailableError("its host has been restarted"));
  }
}

void Replicas::NoteLeaving(const std::string& address) {
  for (const size_t s : ReplicasAt(address)) {
    if (!HasStore(s, calls_->serving(s), calls_->contacts().store_id(s))) continue;
    // It cannot take its shard's place any more.
    const size_t replica = GiveUp(s, absl::UnavailableError("its host leaves"));
    if (replica != kNowhere) DropAt(s, replica);
  }
}

absl::Status Replicas::Ask(size_t s, size_t place, v1::ShardStatus* status) const {
  v1::GetShardStatusRequest request;
  request.set_with_job_state(true);
  absl::Status answered;
  for (int i = 0; i < kSilencesOfTheLost; ++i) {
    answered = calls_->place(s, place).service->GetStatus(request, status);
    if (answered.ok()) break;
  }
  return answered;
}

bool Replicas::FindShard(size_t s, uint64_t placement_fingerprint, v1::ShardStatus* found) {
  std::optional<size_t> newest;
  for (size_t place = 0; place < calls_->places(s); ++place) {
    v1::ShardStatus status;
    if (!Ask(s, place, &status).ok() || status.state() != v1::ShardStatus::READY) continue;
    if (status.placement_fingerprint() != placement_fingerprint) continue;
    if (newest.has_value() && Age(status) <= Age(*found)) continue;
    newest = place;
    *found = status;
  }
  if (!newest.has_value()) return false;
  if (*newest == calls_->serving(s)) return true;
  calls_->Serve(s, *newest);
  LogInfo("a predecessor had the shard served elsewhere: it is ", calls_->name(s));
  return true;
}

}  // namespace keelson
