// One heartbeat serves three purposes: it persists the job state, it tells a server that does not
// know it who belongs to the job, and its answer shows whether the server lost its shard. A
// restored server must know the members before it takes pushes, so Initialize carries them, too.
// Job state is sent only when it is due, since it may be large and servers are visited often; with
// each announcement it is due (ServerGroup::Announce).
#include "chief/servers/server_supervisor.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/servers/snapshotter.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

std::string Seconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(10)));
}

// Keeps the job's mode as it is.
class ModeHold {
 public:
  explicit ModeHold(const ServerSupervisor::Job& job)
      : job_(job), sync_period_(job.hold_mode == nullptr ? 1 : job.hold_mode()) {}
  ModeHold(const ModeHold&) = delete;
  ModeHold& operator=(const ModeHold&) = delete;
  ~ModeHold() {
    if (job_.release_mode != nullptr) job_.release_mode();
  }

  // 0: the job is not synchronous.
  uint64_t sync_period() const { return sync_period_; }

 private:
  const ServerSupervisor::Job& job_;
  const uint64_t sync_period_;
};

}  // namespace

ServerSupervisor::ServerSupervisor(ServerGroup* servers, Job job, const Clock* clock,
                                   const Pauses& pauses)
    : servers_(servers),
      job_(std::move(job)),
      clock_(clock),
      pauses_(pauses),
      state_(job_.persisted, job_.members, clock, pauses.visit) {
  for (size_t s = 0; s < servers->size(); ++s) {
    watches_.emplace_back(servers->name(s), clock).heard = clock->Monotonic();
  }
}

ServerSupervisor::~ServerSupervisor() { Stop(); }

void ServerSupervisor::Start() {
  for (size_t s = 0; s < servers_->size(); ++s) threads_.emplace_back([this, s] { Run(s); });
}

void ServerSupervisor::Stop() {
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  servers_->CancelFileCalls();
  for (Thread& thread : threads_) thread.Join();
  threads_.clear();
}

void ServerSupervisor::PersistNow() {
  MutexLock lock(&mu_);
  ++persist_requests_;
  changed_.NotifyAll();
}

uint64_t ServerSupervisor::persist_requests() const {
  MutexLock lock(&mu_);
  return persist_requests_;
}

void ServerSupervisor::Run(size_t s) {
  while (WaitForTurn(s, Visit(s))) {
  }
}

// False: stopped.
bool ServerSupervisor::WaitForTurn(size_t s, absl::Duration pause) {
  // Threads pause in real time, whatever clock the job has.
  const absl::Duration until = Clock::Real()->Monotonic() + pause;
  MutexLock lock(&mu_);
  while (!stopping_ && persist_requests_ == watches_[s].persist_requests) {
    const absl::Duration rest = until - Clock::Real()->Monotonic();
    if (rest <= absl::ZeroDuration()) break;
    changed_.WaitFor(&mu_, rest);
  }
  return !stopping_;
}

absl::Duration ServerSupervisor::Visit(size_t s) {
  Watch& watch = watches_[s];
  const absl::Duration now = clock_->Monotonic();
  const uint64_t persist_requests = this->persist_requests();
  v1::ChiefHeartbeatRequest request;
  const uint64_t epoch = job_.member_epoch();
  const bool announces = !servers_->KnowsMembers(s, epoch);
  const bool stores = announces || watch.away || now >= watch.persist_due ||
                      persist_requests != watch.persist_requests;
  watch.persist_requests = persist_requests;
  std::shared_ptr<const SharedJobState::State> state;
  if (stores) {
    state = state_.Get({watch.stored + 1, epoch, persist_requests});
    request.set_job_state(state->bytes);
    request.set_job_state_version(state->version);
    if (announces) *request.mutable_members() = state->members;
  }
  v1::ShardStatus shard;
  absl::Status status = servers_->ChiefHeartbeat(s, std::move(request), &shard);
  if (status.ok() && stores) {
    watch.stored = state->number;
    watch.persist_due = now + pauses_.persist;
    job_.note_stored(servers_->stored_version());
  }
  const bool answered = status.ok();
  const bool of_job = answered && !watch.foreign && !servers_->HoldsForeignShard(s, shard);
  if (of_job && job_.note_committed != nullptr) job_.note_committed(shard.committed_round());
  if (answered && job_.note_told != nullptr) job_.note_told(servers_->known_epoch());
  bool empty = answered && (watch.foreign || shard.state() == v1::ShardStatus::EMPTY ||
                            servers_->HoldsForeignShard(s, shard));
  // The shard may have moved since the process that had it said that.
  if (empty && !watch.foreign && servers_->MayMove(s)) empty = servers_->LacksShard(s);
  watch.silences = answered ? 0 : watch.silences + 1;
  if (MoveIfLost(s, empty, &watch)) return absl::ZeroDuration();
  const bool awaits_replica = empty && AwaitsReplica(watch);
  if (empty && !awaits_replica) status = Restore(s, &watch);
  if (status.code() == absl::StatusCode::kAborted) {
    job_.note_replaced(status);
    return pauses_.restore;
  }
  if (!answered && !watch.away) LogWarning("lost ", servers_->name(s), ": ", status.message());
  if (answered && watch.away) LogInfo(servers_->name(s), " is back");
  watch.away = !answered;
  if (!answered) return pauses_.away;
  if (!status.ok()) return pauses_.restore;
  if (awaits_replica) return pauses_.away;
  if (!empty && shard.state() == v1::ShardStatus::INITIALIZING) return pauses_.away;
  watch.heard = clock_->Monotonic();
  KeepInPlace(s, now, &watch);
  return pauses_.visit;
}

bool ServerSupervisor::MoveIfLost(size_t s, bool empty, Watch* watch) {
  const bool lost = empty || watch->silences >= Replicas::kSilencesOfTheLost;
  if (!lost || !servers_->HasReplica(s)) {
    watch->replica_silent_since.reset();
    return false;
  }
  // Until workers are told where the shard is.
  const ModeHold mode(job_);
  servers_->ForgetOldReplica(s, mode.sync_period());
  if (!servers_->HasReplica(s)) {
    watch->replica_silent_since.reset();
    return false;
  }
  const std::optional<Task> host = servers_->HostOf(s);
  const absl::Status moved = servers_->MoveToReplica(s, /*restarted=*/empty);
  if (moved.ok()) {
    watch->NoteMoved(clock_->Monotonic());
    if (job_.note_moved != nullptr) job_.note_moved(host);
    return true;
  }
  if (!servers_->HasReplica(s)) {
    // It has answered, but was restarted.
    watch->replica_silent_since.reset();
  } else if (!watch->replica_silent_since.has_value()) {
    watch->replica_silent_since = clock_->Monotonic();
    LogWarning(servers_->name(s), " is lost, and its replica does not answer: ", moved.message());
  }
  return false;
}

bool ServerSupervisor::AwaitsReplica(const Watch& watch) const {
  return watch.replica_silent_since.has_value() &&
         clock_->Monotonic() - *watch.replica_silent_since < pauses_.only_copy;
}

void ServerSupervisor::KeepInPlace(size_t s, absl::Duration now, Watch* watch) {
  if (!servers_->MayMove(s)) return;
  const ModeHold mode(job_);
  servers_->ForgetOldReplica(s, mode.sync_period());
  if (!servers_->Misplaced(s, mode.sync_period() != 0) || now < watch->replica_due) return;
  TrySettle(s, mode.sync_period(), watch);
}

void ServerSupervisor::TrySettle(size_t s, uint64_t sync_period, Watch* watch) {
  watch->replica_due = clock_->Monotonic() + pauses_.replica;
  const absl::StatusOr<bool> moved = servers_->Settle(s, sync_period, job_.members());
  if (!moved.ok() || !*moved) return;
  watch->NoteMoved(clock_->Monotonic());
  if (job_.note_moved != nullptr) job_.note_moved(std::nullopt);
}

absl::Status ServerSupervisor::Restore(size_t s, Watch* watch) {
  const absl::StatusOr<std::optional<SnapshotInfo>> used = RestoreNewest(s, watch);
  if (used.status().code() != absl::StatusCode::kAborted) watch->restores.Note(used.status());
  RETURN_IF_ERROR(used.status());
  // It was lost with the shard, or has what is not in the snapshot.
  servers_->ForgetReplica(s);
  watch->foreign = false;
  watch->missing_since.reset();
  SayRestored(s, *watch, *used);
  return absl::OkStatus();
}

absl::Status ServerSupervisor::InitializeAnew(size_t s) {
  const v1::PersistedJobState persisted = job_.persisted();
  const int64_t step = std::max(persisted.job().global_step(), persisted.snapshot_step());
  if (step > 0) {
    return absl::UnavailableError(absl::StrCat(
        servers_->name(s), ": found no snapshot to restore it from, although the job is at step ",
        step, "; is the model directory there?"));
  }
  return servers_->InitializeServer(s, std::nullopt, job_.members());
}

bool ServerSupervisor::MayAppear(Watch* watch) const {
  const absl::Duration now = clock_->Monotonic();
  if (!watch->missing_since.has_value()) watch->missing_since = now;
  return now - *watch->missing_since < pauses_.missing;
}

absl::Status ServerSupervisor::CheckLeads() const {
  const absl::Status confirmed = job_.confirm == nullptr ? absl::OkStatus() : job_.confirm();
  return absl::IsAlreadyExists(confirmed) ? confirmed : absl::OkStatus();
}

absl::StatusOr<std::optional<SnapshotInfo>> ServerSupervisor::RestoreNewest(size_t s,
                                                                            Watch* watch) {
  // A process that has just been started obeys whoever calls it first. Updates of a shard that a
  // replaced chief gave it would be lost when this one's successor makes the shard.
  RETURN_IF_ERROR(CheckLeads());
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, job_.snapshots());
  if (snapshots.empty()) {
    RETURN_IF_ERROR(InitializeAnew(s));
    return std::nullopt;
  }
  std::vector<std::string> damages;
  for (const SnapshotInfo& snapshot : snapshots) {
    const absl::Status status = servers_->InitializeServer(s, snapshot.step, job_.members());
    if (status.ok()) {
      for (const std::string& damage : damages) {
        LogError(servers_->name(s), ": a snapshot cannot be used, one before it is: ", damage);
      }
      return snapshot;
    }
    const bool may_appear = absl::IsNotFound(status) && MayAppear(watch);
    if (may_appear || !IsDamagedSnapshot(status)) return status;
    damages.emplace_back(status.message());
  }
  return absl::DataLossError(
      absl::StrCat("none of ", snapshots.size(), " snapshots can be used: ", damages[0]));
}

void ServerSupervisor::SayRestored(size_t s, const Watch& watch,
                                   const std::optional<SnapshotInfo>& snapshot) {
  const int64_t step = job_.persisted().job().global_step();
  const int64_t from = snapshot.has_value() ? snapshot->step : 0;
  const std::string lost =
      step > from ? absl::StrCat("lost steps ", from, " to ", step) : std::string("lost no step");
  LogWarning(servers_->name(s), " has been restarted and restored from ",
             snapshot.has_value() ? snapshot->prefix : "its initial values", ": ", lost,
             " of its shard, was away for ", Seconds(clock_->Monotonic() - watch.heard));
}

}  // namespace keelson
