#include "chief/servers/server_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

constexpr absl::Duration kProbePause = absl::Milliseconds(100);

// How long a replica that is to be made waits for the round that is being committed.
constexpr absl::Duration kReplicaPatience = absl::Seconds(2);

ServerContacts::Server PlaceOf(const ServerCalls::Server& server) {
  return {server.name, server.address, server.host};
}

v1::ChiefHeartbeatRequest StoringRequest(const v1::PersistedJobState& persisted) {
  v1::ChiefHeartbeatRequest request;
  request.set_job_state(persisted.SerializeAsString());
  request.set_job_state_version(persisted.job().state_version());
  return request;
}

}  // namespace

ServerGroup::ServerGroup(const Options& options, std::vector<Server> servers, ShardStorage* storage,
                         const Clock* clock, const StopSignal* stop)
    : options_(options),
      storage_(storage),
      clock_(clock),
      stop_(stop),
      calls_(options.header, std::move(servers), clock->Now()),
      replicas_(&calls_),
      rounds_(&calls_, &replicas_, clock),
      cuts_(&calls_, &rounds_, storage, stop),
      place_mu_(calls_.size()),
      may_go_home_(calls_.size()),
      replica_periods_(calls_.size()) {}

absl::Status ServerGroup::WaitUntilReachable() {
  absl::Duration no_job_since = clock_->Monotonic();
  absl::Duration reported = no_job_since;
  std::optional<absl::Duration> job_since;
  // Servers that could not be made ready are tried again.
  contacts().ForgiveBroken();
  // Each time all are asked: one that has answered may be another process by now.
  while (true) {
    RETURN_IF_ERROR(calls_.ForEach([this](size_t s) { return OutrankIn(s); }));
    const bool all_registered =
        job_since.has_value() && clock_->Monotonic() - *job_since >= options_.registration_patience;
    RETURN_IF_ERROR(calls_.ForEach([&](size_t s) { return Probe(s, all_registered); }));
    const std::vector<std::string> missing = Missing();
    if (missing.empty()) return absl::OkStatus();
    const absl::Duration now = clock_->Monotonic();
    const std::string holder = contacts().HolderOfJob();
    if (!holder.empty()) {
      no_job_since = now;
      job_since = job_since.value_or(now);
    }
    if (now - no_job_since >= options_.startup_timeout) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(options_.startup_timeout),
                       " from ", absl::StrJoin(missing, ", ")));
    }
    if (now - reported >= options_.report_every) {
      LogWarning("still waiting for ", absl::StrJoin(missing, ", "),
                 holder.empty() ? ""
                                : absl::StrCat("; the job is running: ", holder,
                                               " holds its shard, and waits likewise"));
      reported = now;
    }
    if (stop_->WaitFor(kProbePause)) {
      return absl::CancelledError("while waiting for those who hold the model");
    }
  }
}

bool ServerGroup::HasJob(const v1::ShardStatus& found) const {
  MutexLock lock(&mu_);
  return found.state() == v1::ShardStatus::READY && found.job_state_version() > 0 &&
         found.placement_fingerprint() == shards_.placement_fingerprint();
}

absl::Status ServerGroup::OutrankIn(size_t s) {
  v1::ShardStatus status;
  // The call that follows says what is wrong.
  if (contacts().Met(s) || !calls_.service(s)->GetStatus({}, &status).ok()) return absl::OkStatus();
  MutexLock lock(&term_mu_);
  if (status.chief_term() < term()) return absl::OkStatus();
  if (options_.raise_term != nullptr) {
    ASSIGN_OR_RETURN(const uint64_t raised, options_.raise_term(status.chief_term()));
    calls_.SetTerm(raised);
    return absl::OkStatus();
  }
  if (!contacts().MetAny()) calls_.SetTerm(status.chief_term() + 1);
  return absl::OkStatus();
}

absl::Status ServerGroup::Probe(size_t s, bool all_registered) {
  const bool met = contacts().Met(s);
  v1::ShardStatus status;
  absl::Status answered = ChiefHeartbeat(s, {}, &status);
  // A process that the job goes on without may never come back.
  const bool job_runs = !contacts().HolderOfJob().empty();
  const bool is_away =
      absl::IsUnavailable(answered) && (all_registered || !calls_.address(s).empty());
  if (is_away && job_runs && FindShard(s, &status)) {
    answered = ChiefHeartbeat(s, {}, &status);
  }
  if (met && absl::IsAborted(answered)) return answered;
  // A server with another token of the job, or of another build, refuses this chief for ever.
  if (absl::IsPermissionDenied(answered) || absl::IsFailedPrecondition(answered)) return answered;
  if (absl::IsAlreadyExists(answered) && contacts().NoteHeld(s)) {
    LogWarning("waiting for ", name(s), ": ", answered.message());
  }
  if (!answered.ok()) return absl::OkStatus();
  if (status.takes_any_config() || status.config_hash() == options_.config_hash) {
    return absl::OkStatus();
  }
  return ConfigMismatch(options_.config_hash, status.config_hash(), "the server");
}

absl::StatusOr<std::vector<v1::ShardStatus>> ServerGroup::Survey() {
  std::vector<v1::ShardStatus> shards(size());
  v1::GetShardStatusRequest request;
  request.set_with_job_state(true);
  RETURN_IF_ERROR(calls_.ForEach([&](size_t s) {
    const absl::Status answered = calls_.service(s)->GetStatus(request, &shards[s]);
    if (!answered.ok()) contacts().NoteMissing(s);
    RETURN_IF_ERROR(answered);
    FindShard(s, &shards[s]);
    return absl::OkStatus();
  }));
  return shards;
}

bool ServerGroup::FindShard(size_t s, v1::ShardStatus* found) {
  if (calls_.places(s) == 1) return false;
  uint64_t fingerprint = 0;
  {
    MutexLock lock(&mu_);
    fingerprint = shards_.placement_fingerprint();
  }
  const size_t before = calls_.serving(s);
  if (!replicas_.FindShard(s, fingerprint, found)) return false;
  if (calls_.serving(s) != before) {
    contacts().NoteMoved(s, PlaceOf(calls_.at(s)), *found, clock_->Now());
  }
  return true;
}

void ServerGroup::Describe(const v1::InitializeShardRequest& shards) {
  MutexLock lock(&mu_);
  shards_ = shards;
  shards_.set_config_hash(options_.config_hash);
}

void ServerGroup::SetMaxSteps(int64_t max_steps) {
  MutexLock lock(&mu_);
  shards_.set_max_steps(max_steps);
}

int64_t ServerGroup::max_steps() const {
  MutexLock lock(&mu_);
  return shards_.max_steps();
}

absl::Status ServerGroup::Initialize(std::optional<int64_t> restore_step,
                                     const v1::MemberList& members) {
  RETURN_IF_ERROR(
      calls_.ForEach([&](size_t s) { return InitializeServer(s, restore_step, members); }));
  for (size_t s = 0; s < size(); ++s) contacts().NoteWhole(s, contacts().makings(s));
  return absl::OkStatus();
}

absl::Status ServerGroup::ChiefHeartbeat(size_t s, v1::ChiefHeartbeatRequest request,
                                         v1::ShardStatus* status) {
  Complete(&request);
  NoteJobState(request);
  absl::Status answered;
  size_t place = 0;
  do {  // what a process says of a shard that it has given away counts no more
    place = calls_.serving(s);
    answered = calls_.service(s)->ChiefHeartbeat(request, status);
  } while (calls_.serving(s) != place);
  if (answered.ok()) {
    contacts().NoteAnswer(s, request, *status, HasJob(*status), clock_->Now());
  } else {
    contacts().NoteSilence(s, clock_->Now());
  }
  return answered;
}

void ServerGroup::Complete(v1::ChiefHeartbeatRequest* request) const {
  *request->mutable_header() = calls_.Header();
  request->set_chief_address(options_.chief_address);
  request->set_stopping(stop_->raised());
  request->set_saved_cut(cuts_.saved());
}

void ServerGroup::NoteJobState(const v1::ChiefHeartbeatRequest& request) {
  if (request.job_state().empty()) return;
  MutexLock lock(&mu_);
  if (request.job_state_version() < job_state_.job_state_version()) return;
  job_state_.set_job_state(request.job_state());
  job_state_.set_job_state_version(request.job_state_version());
}

absl::Status ServerGroup::StoreJobStateAt(size_t s, size_t place) {
  v1::ChiefHeartbeatRequest request;
  {
    MutexLock lock(&mu_);
    request = job_state_;
  }
  Complete(&request);
  v1::ShardStatus status;
  return calls_.place(s, place).service->ChiefHeartbeat(request, &status);
}

absl::Status ServerGroup::InitializeServer(size_t s, std::optional<int64_t> restore_step,
                                           const v1::MemberList& members) {
  v1::InitializeShardRequest request = ShardRequest(s, members);
  if (restore_step.has_value()) request.set_restore_step(*restore_step);
  if (const int64_t round = rounds_.committed(); round >= 0) request.set_committed_round(round);
  contacts().NoteMaking(s);
  v1::InitializeShardResponse response;
  const absl::Status status = storage_->Initialize(calls_.service(s), request, &response);
  if (status.ok()) {
    contacts().NoteReady(s, response.status().store_id(), clock_->Now());
  } else {
    contacts().NoteBroken(s);
  }
  return status;
}

v1::InitializeShardRequest ServerGroup::ShardRequest(size_t s,
                                                     const v1::MemberList& members) const {
  v1::InitializeShardRequest request;
  {
    MutexLock lock(&mu_);
    request = shards_;
  }
  *request.mutable_header() = calls_.Header();
  request.set_shard(static_cast<uint32_t>(s));
  *request.mutable_members() = members;
  return request;
}

bool ServerGroup::LacksShard(size_t s) {
  MutexLock lock(&place_mu_[s]);
  v1::ShardStatus status;
  if (!calls_.service(s)->GetStatus({}, &status).ok()) return false;
  return status.state() == v1::ShardStatus::EMPTY || contacts().HoldsForeignShard(s, status);
}

bool ServerGroup::Misplaced(size_t s, bool synchronous) const {
  if (calls_.places(s) == 1) return false;
  return !calls_.at_home(s) || (options_.replicas && synchronous && !replicas_.Has(s));
}

void ServerGroup::ForgetReplica(size_t s) {
  if (!replicas_.Has(s)) return;
  MutexLock lock(&place_mu_[s]);
  const size_t place = replicas_.at(s);
  if (place == Replicas::kNowhere) return;
  replicas_.Forget(s);
  replicas_.DropAt(s, place);
}

void ServerGroup::ForgetOldReplica(size_t s, uint64_t sync_period) {
  if (sync_period == 0 || replica_periods_[s] != sync_period) ForgetReplica(s);
}

bool ServerGroup::Stays(size_t s, size_t place) {
  v1::ShardStatus status;
  const absl::Status answered = calls_.place(s, place).service->GetStatus({}, &status);
  return answered.ok() && !status.asked_to_stop();
}

absl::StatusOr<size_t> ServerGroup::FreePlace(size_t s) {
  for (size_t place = 0; place < calls_.places(s); ++place) {
    if (place != calls_.serving(s) && Stays(s, place)) return place;
  }
  return absl::UnavailableError(
      absl::StrCat("no other process that hosts shards is there for ", name(s)));
}

absl::StatusOr<bool> ServerGroup::Settle(size_t s, uint64_t sync_period,
                                         const v1::MemberList& members) {
  MutexLock lock(&place_mu_[s]);
  may_go_home_[s] = false;
  ASSIGN_OR_RETURN(const size_t place, FreePlace(s));
  const size_t from = calls_.serving(s);
  const bool goes_home = place == 0;
  if (!options_.replicas || sync_period == 0) {
    may_go_home_[s] = goes_home;
    return false;
  }
  // One that has its replica stays where it is until its home is back.
  if (!goes_home && replicas_.Has(s)) return false;
  replica_periods_[s] = sync_period;
  RETURN_IF_ERROR(MakeAt(s, place, members, /*move=*/goes_home));
  if (goes_home) {
    DropWhereLeaving(s, from);
  } else {
    LogInfo(name(s), " has a replica at ", calls_.place(s, place).name);
  }
  return goes_home;
}

void ServerGroup::DropWhereLeaving(size_t s, size_t place) {
  v1::ShardStatus status;
  const absl::Status answered = calls_.place(s, place).service->GetStatus({}, &status);
  if (!answered.ok() || !status.asked_to_stop() || replicas_.at(s) != place) return;
  replicas_.Forget(s);
  replicas_.DropAt(s, place);
}

absl::Status ServerGroup::MakeAt(size_t s, size_t place, const v1::MemberList& members, bool move) {
  return rounds_.WithoutRounds(kReplicaPatience, [&]() -> absl::Status {
    RETURN_IF_ERROR(replicas_.Make(s, place, ShardRequest(s, members)));
    return move ? MoveTo(s, /*both_equal=*/true) : absl::OkStatus();
  });
}

absl::Status ServerGroup::HandOver(size_t s, const v1::MemberList& members) {
  MutexLock lock(&place_mu_[s]);
  may_go_home_[s] = false;
  const size_t from = calls_.serving(s);
  const std::string from_address = calls_.address(s);
  size_t place = replicas_.at(s);
  if (place == Replicas::kNowhere || !Stays(s, place)) {
    ASSIGN_OR_RETURN(place, FreePlace(s));
  }
  if (replicas_.at(s) == place) {
    RETURN_IF_ERROR(
        rounds_.WithoutRounds(kReplicaPatience, [&] { return MoveTo(s, /*both_equal=*/false); }));
  } else {
    RETURN_IF_ERROR(MakeAt(s, place, members, /*move=*/true));
  }
  replicas_.Forget(s);
  replicas_.DropAt(s, from);
  if (options_.replicas) replicas_.NoteLeaving(from_address);
  return absl::OkStatus();
}

absl::Status ServerGroup::MoveToReplica(size_t s, bool restarted) {
  MutexLock lock(&place_mu_[s]);
  const std::string lost = calls_.address(s);
  ParameterControl* const service = calls_.service(s);
  RETURN_IF_ERROR(MoveTo(s, /*both_equal=*/false));
  rounds_.CommitWhereMoved(s);
  if (restarted) {
    replicas_.NoteRestarted(lost);
  } else {
    replicas_.NoteLost(lost);
  }
  service->GiveUpCalls();
  return absl::OkStatus();
}

absl::Status ServerGroup::MoveTo(size_t s, bool both_equal) {
  const std::string from = name(s);
  if (const size_t replica = replicas_.at(s); replica != Replicas::kNowhere) {
    RETURN_IF_ERROR(StoreJobStateAt(s, replica));
  }
  v1::ShardStatus status;
  RETURN_IF_ERROR(replicas_.Move(s, both_equal, &status));
  contacts().NoteMoved(s, PlaceOf(calls_.at(s)), status, clock_->Now());
  LogInfo(from, " is from now on ", name(s));
  return absl::OkStatus();
}

std::vector<std::string> ServerGroup::Addresses() const {
  std::vector<std::string> addresses;
  for (size_t s = 0; s < size(); ++s) addresses.push_back(calls_.address(s));
  return addresses;
}

absl::Status ServerGroup::PersistState(const v1::PersistedJobState& persisted) {
  const v1::ChiefHeartbeatRequest request = StoringRequest(persisted);
  return calls_.ForEach([&](size_t s) {
    v1::ShardStatus status;
    return ChiefHeartbeat(s, request, &status);
  });
}

absl::Status ServerGroup::Confirm() {
  return calls_.ForEach([&](size_t s) {
    v1::ShardStatus status;
    return ChiefHeartbeat(s, {}, &status);
  });
}

void ServerGroup::Announce(const v1::MemberList& members, const v1::PersistedJobState& persisted) {
  v1::ChiefHeartbeatRequest request = StoringRequest(persisted);
  *request.mutable_members() = members;
  const absl::Status status = calls_.ForEach([&](size_t s) {
    if (!contacts().Answers(s)) return absl::OkStatus();
    v1::ShardStatus shard;
    return ChiefHeartbeat(s, request, &shard);
  });
  if (!status.ok())
    LogWarning("could not tell a server who belongs to the job: ", status.message());
}

void ServerGroup::CancelFileCalls() {
  for (size_t s = 0; s < size(); ++s) {
    for (size_t place = 0; place < calls_.places(s); ++place) {
      calls_.place(s, place).service->CancelFileCalls();
    }
  }
}

void ServerGroup::Finish() {
  const absl::Status status = calls_.ForEach([&](size_t s) {
    v1::FinishShardRequest request;
    *request.mutable_header() = calls_.Header();
    v1::FinishShardResponse response;
    const absl::Status status = calls_.service(s)->Finish(request, &response);
    if (status.ok()) contacts().NoteEnd(s, clock_->Now());
    // The process at its home may serve no shard at present.
    if (!calls_.at_home(s)) calls_.place(s, 0).service->Finish(request, &response).IgnoreError();
    return status;
  });
  if (!status.ok()) LogWarning("could not tell a server that the job is over: ", status.message());
}

}  // namespace keelson
