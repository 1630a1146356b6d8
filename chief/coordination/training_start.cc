#include "chief/coordination/training_start.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/base/log.h"
#include "core/cluster/consistency.h"
#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

// More attempts than a chief can have begun beyond those that it persisted or that a server has
// seen.
constexpr uint32_t kUnheardOfAttempts = 1000;

// The first attempt number is the seconds since 2020, so a later chief's attempts are greater than
// those of an earlier one.
uint32_t FirstAttempt(const Clock* clock) {
  const absl::Duration since = clock->Now() - absl::FromUnixSeconds(1'577'836'800);
  return static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToInt64Seconds(since), 1, std::numeric_limits<int32_t>::max()));
}

}  // namespace

TrainingStart::TrainingStart(CoordinatorState* state)
    : state_(state), first_attempt_(FirstAttempt(state->clock)) {}

void TrainingStart::StartTraining(ModelLocation model, WorkLedger ledger) {
  MutexLock lock(&state_->mu);
  BeginTraining(std::move(model), std::move(ledger));
}

void TrainingStart::BeginTraining(ModelLocation model, WorkLedger ledger) {
  // Shards that have moved stay where they are.
  if (state_->model.has_value()) {
    model.ps_addresses = std::move(state_->model->ps_addresses);
    model.servers_version = state_->model->servers_version;
  }
  state_->model = std::move(model);
  const Training::Options options = {state_->options.config_hash, state_->options.mode,
                                     state_->options.loss_interval, state_->options.max_loss};
  state_->training.emplace(options, std::move(ledger), first_attempt_);
  LogOtherMode();
  state_->phase = JobPhase::kTraining;
  state_->RequestPersistence();
  state_->WakeAll();
}

void TrainingStart::LogOtherMode() const {
  const ConsistencyMode& mode = state_->training->work().mode();
  if (mode == state_->options.mode) return;
  LogInfo("consistency mode: ", mode.ToString(), ", as the job has had it; one that begins has ",
          state_->options.mode.ToString(), " (keelson_ctl mode changes it)");
}

void TrainingStart::Resume(ModelLocation model, WorkLedger ledger,
                           const v1::PersistedJobState& persisted) {
  MutexLock lock(&state_->mu);
  state_->resumed = true;
  RaiseAttemptBeyond(persisted.attempt());
  state_->membership.RaiseEpoch(persisted.member_epoch());
  state_->membership.Inherit(persisted.member_epoch());
  std::set<uint64_t> members;
  for (const v1::PersistedJobState::Member& entry : persisted.members()) {
    // There is no waiting for a task that is not part of this job.
    const absl::StatusOr<Task> task = TaskFromProto(entry.task());
    if (!task.ok()) continue;
    members.insert(entry.incarnation());
    state_->membership.Expect({*task, entry.incarnation(), entry.peer(), Member::kAway,
                               absl::ZeroDuration(), entry.restarts(), absl::Time(), entry.device(),
                               entry.membership_secret()});
  }
  // The membership of this lease's worker was over, but its work was not handed on.
  for (const v1::PersistedJobState::Lease& lease : persisted.leases()) {
    if (members.insert(lease.worker()).second) state_->newly_ended.push_back(lease.worker());
  }
  for (const uint64_t incarnation : state_->newly_ended) state_->membership.Lose(incarnation);
  state_->snapshots.TakeOver(persisted);
  BeginTraining(std::move(model), std::move(ledger));
  state_->training->work().NoteCommittedRounds(committed_rounds_,
                                               /*same_mode=*/!persisted.mode_pending());
  state_->NoticeEnds();
  // Members that registered before this call hold no leases; otherwise they would have claimed
  // them.
  for (const Member& member : state_->membership.Members()) {
    if (member.state == Member::kAlive) state_->ClaimLeases(member.task, member.incarnation, {});
  }
}

void TrainingStart::RaiseAttempt(uint32_t at_least) {
  MutexLock lock(&state_->mu);
  RaiseAttemptBeyond(at_least);
}

void TrainingStart::RaiseAttemptBeyond(uint32_t known) {
  first_attempt_ = std::max(first_attempt_, known + kUnheardOfAttempts);
}

void TrainingStart::NoteCommittedRounds(int64_t newest) {
  MutexLock lock(&state_->mu);
  committed_rounds_ = std::max(committed_rounds_, newest);
}

void TrainingStart::RaiseMemberEpoch(uint64_t at_least) {
  MutexLock lock(&state_->mu);
  state_->membership.RaiseEpoch(at_least);
}

}  // namespace keelson
