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
      rounds_(&calls_, clock),
      cuts_(&calls_, &rounds_, storage, stop) {}

absl::Status ServerGroup::WaitUntilReachable() {
  absl::Duration no_job_since = clock_->Monotonic();
  absl::Duration reported = no_job_since;
  // Servers that could not be made ready are tried again.
  contacts().ForgiveBroken();
  // Each time all are asked: one that has answered may be another process by now.
  while (true) {
    RETURN_IF_ERROR(calls_.ForEach([this](size_t s) { return OutrankIn(s); }));
    RETURN_IF_ERROR(calls_.ForEach([this](size_t s) { return Probe(s); }));
    const std::vector<std::string> missing = Missing();
    if (missing.empty()) return absl::OkStatus();
    const absl::Duration now = clock_->Monotonic();
    const std::string holder = contacts().HolderOfJob();
    if (!holder.empty()) no_job_since = now;
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
      return absl::CancelledError("while waiting for the parameter servers");
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

absl::Status ServerGroup::Probe(size_t s) {
  const bool met = contacts().Met(s);
  v1::ShardStatus status;
  const absl::Status answered = ChiefHeartbeat(s, {}, &status);
  if (met && absl::IsAborted(answered)) return answered;
  // A server with another token of the job, or of another build, refuses this chief for ever.
  if (absl::IsPermissionDenied(answered) || absl::IsFailedPrecondition(answered)) return answered;
  if (absl::IsAlreadyExists(answered) && contacts().NoteHeld(s)) {
    LogWarning("waiting for ", name(s), ": ", answered.message());
  }
  if (!answered.ok()) return absl::OkStatus();
  if (status.config_hash() == options_.config_hash) return absl::OkStatus();
  return ConfigMismatch(options_.config_hash, status.config_hash(), "the server");
}

absl::StatusOr<std::vector<v1::ShardStatus>> ServerGroup::Survey() {
  std::vector<v1::ShardStatus> shards(size());
  v1::GetShardStatusRequest request;
  request.set_with_job_state(true);
  RETURN_IF_ERROR(calls_.ForEach([&](size_t s) {
    const absl::Status answered = calls_.service(s)->GetStatus(request, &shards[s]);
    if (!answered.ok()) contacts().NoteMissing(s);
    return answered;
  }));
  return shards;
}

void ServerGroup::Describe(const v1::InitializeShardRequest& shards) {
  MutexLock lock(&mu_);
  shards_ = shards;
  shards_.set_config_hash(options_.config_hash);
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
  *request.mutable_header() = calls_.Header();
  request.set_chief_address(options_.chief_address);
  request.set_stopping(stop_->raised());
  request.set_saved_cut(cuts_.saved());
  const absl::Status answered = calls_.service(s)->ChiefHeartbeat(request, status);
  if (answered.ok()) {
    contacts().NoteAnswer(s, request, *status, HasJob(*status), clock_->Now());
  } else {
    contacts().NoteSilence(s, clock_->Now());
  }
  return answered;
}

absl::Status ServerGroup::InitializeServer(size_t s, std::optional<int64_t> restore_step,
                                           const v1::MemberList& members) {
  v1::InitializeShardRequest request;
  {
    MutexLock lock(&mu_);
    request = shards_;
  }
  *request.mutable_header() = calls_.Header();
  request.set_shard(static_cast<uint32_t>(s));
  if (restore_step.has_value()) request.set_restore_step(*restore_step);
  if (const int64_t round = rounds_.committed(); round >= 0) request.set_committed_round(round);
  *request.mutable_members() = members;
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
  for (size_t s = 0; s < size(); ++s) calls_.service(s)->CancelFileCalls();
}

void ServerGroup::Finish() {
  const absl::Status status = calls_.ForEach([&](size_t s) {
    v1::FinishShardRequest request;
    *request.mutable_header() = calls_.Header();
    v1::FinishShardResponse response;
    const absl::Status status = calls_.service(s)->Finish(request, &response);
    if (status.ok()) contacts().NoteEnd(s, clock_->Now());
    return status;
  });
  if (!status.ok()) LogWarning("could not tell a server that the job is over: ", status.message());
}

}  // namespace keelson
