// Leases and rounds exclude each other: a round's step is completed_steps(), which is the next step
// only when no lease is out. So a change of the mode, and the first round, wait until nothing is
// under way (Settle), and committed rounds of a predecessor are counted only then, too.
#include "chief/coordination/work_dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {

WorkDispatcher::WorkDispatcher(WorkLedger ledger, const ConsistencyMode& mode,
                               uint32_t first_attempt)
    : ledger_(std::move(ledger)),
      mode_(mode),
      bound_(mode.staleness),
      rounds_(mode.replicas_to_aggregate),
      attempt_(first_attempt) {
  ledger_.CountSteps(mode_.batches_per_step());
}

bool WorkDispatcher::MayGrant() const {
  if (ledger_.Done()) return false;
  // A round that workers have begun is completed first.
  return !Draining() || (mode_.synchronous() && rounds_.open());
}

std::optional<WorkLease> WorkDispatcher::Grant(uint64_t worker, int64_t max_tickets,
                                               int64_t alive_workers,
                                               std::optional<int64_t> place) {
  Settle();
  if (!MayGrant()) return std::nullopt;
  if (mode_.synchronous()) return GrantOfRound(worker, alive_workers, place);
  const bool bounded = mode_.kind == ConsistencyMode::kBoundedStaleness;
  if (bounded) {
    bound_.Join(worker, ledger_.Outstanding(worker));
    max_tickets = std::min(max_tickets, bound_.Allowance(worker));
  }
  std::optional<WorkLease> lease = ledger_.Acquire(worker, max_tickets);
  if (lease.has_value() && bounded) {
    bound_.Granted(worker, static_cast<int64_t>(lease->tickets.size()));
    lease->fresh_values = true;
  }
  return lease;
}

std::optional<WorkLease> WorkDispatcher::GrantOfRound(uint64_t worker, int64_t alive_workers,
                                                      std::optional<int64_t> place) {
  if (!rounds_.open()) {
    if (ledger_.AnyLeased()) return std::nullopt;
    rounds_.Open(ledger_.completed_steps(), attempt_, ledger_.OpenRound(mode_.total_replicas));
  }
  const uint64_t lease_id = ledger_.NewLeaseId();
  const std::optional<RecordRange> records = rounds_.Grant(worker, lease_id, alive_workers, place);
  if (!records.has_value()) return std::nullopt;
  WorkLease lease;
  lease.id = lease_id;
  lease.tickets = {{rounds_.step(), records->epoch, records->begin, records->end}};
  lease.attempt = rounds_.attempt();
  lease.contested = rounds_.contested();
  lease.last_of_step = rounds_.MostOf(alive_workers) == 1;
  lease.follows_round = own_round_ == rounds_.step() - 1;
  lease.fresh_values = true;
  if (place.has_value()) {
    lease.order = static_cast<uint32_t>(rounds_.PlaceOf(worker, lease_id)) + 1;
  }
  return lease;
}

absl::Status WorkDispatcher::Complete(uint64_t worker, uint64_t lease_id, int64_t completed) {
  if (rounds_.Holds(worker, lease_id)) {
    if (completed == 0 || (completed == 1 && rounds_.Stage(worker, lease_id))) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("work lease ", lease_id,
                     ": completed: expected 0, or 1 after it was admitted, found ", completed));
  }
  const int64_t before = ledger_.completed_steps();
  absl::Status status = ledger_.Complete(worker, lease_id, completed);
  bound_.Completed(worker, ledger_.completed_steps() - before);
  Settle();
  return status;
}

bool WorkDispatcher::Admit(uint64_t worker, uint64_t lease_id, int64_t step, uint32_t attempt) {
  return rounds_.open() && step == rounds_.step() && rounds_.Admit(worker, lease_id, attempt);
}

void WorkDispatcher::Forget(uint64_t worker) { bound_.Leave(worker); }

int64_t WorkDispatcher::Release(uint64_t worker) {
  if (!rounds_.Lose(worker)) rounds_.Restart(++attempt_);
  const int64_t released = ledger_.Release(worker);
  Settle();
  return released;
}

bool WorkDispatcher::Claim(uint64_t worker, const HeldLease& lease, bool may_adopt,
                           std::vector<uint64_t>* superseded) {
  if (lease.attempt != 0) {
    return lease.attempt == rounds_.attempt() && rounds_.Holds(worker, lease.id) &&
           Complete(worker, lease.id, lease.completed).ok();
  }
  const bool kept = ledger_.Confirm(worker, lease) ||
                    (may_adopt && !rounds_.open() && ledger_.Adopt(worker, lease, superseded));
  Settle();
  return kept;
}

int64_t WorkDispatcher::ReleaseUnconfirmed(uint64_t worker) {
  const int64_t released = ledger_.ReleaseUnconfirmed(worker);
  Settle();
  return released;
}

std::set<uint64_t> WorkDispatcher::Owing() const {
  std::set<uint64_t> workers;
  ledger_.AddOwing(&workers);
  rounds_.AddOwing(&workers);
  return workers;
}

std::optional<SyncRounds::Round> WorkDispatcher::OpenRound() const {
  if (!rounds_.open()) return std::nullopt;
  return SyncRounds::Round{rounds_.step(), rounds_.attempt(), /*contributions=*/0};
}

bool WorkDispatcher::RoundCommitted(const SyncRounds::Round& round) {
  if (rounds_.Staged() != round) return false;
  ledger_.CompleteRound(rounds_.StagedBatches());
  committed_rounds_ = round.step;
  own_round_ = round.step;
  rounds_.Close();
  Settle();
  return true;
}

bool WorkDispatcher::RoundFailed(const SyncRounds::Round& round) {
  if (rounds_.Staged() != round) return false;
  rounds_.Restart(++attempt_);
  Settle();
  return true;
}

bool WorkDispatcher::NoteRefused(uint64_t worker, uint64_t lease_id, int64_t step,
                                 uint32_t attempt) {
  const bool awaited =
      rounds_.open() && step == rounds_.step() && rounds_.Refuse(worker, lease_id, attempt);
  if (!awaited) return false;
  rounds_.Restart(++attempt_);
  Settle();
  return true;
}

bool WorkDispatcher::NoteForeignCommit(int64_t newest) {
  if (!rounds_.open() || rounds_.step() > newest || rounds_.Staged().has_value()) return false;
  committed_rounds_ = rounds_.step();
  rounds_.Close();
  ledger_.AbandonRound();
  Settle();
  return true;
}

void WorkDispatcher::NoteCommittedRounds(int64_t newest, bool same_mode) {
  committed_rounds_ = newest;
  if (ledger_.AnyLeased()) return;
  SkipCommittedRounds(same_mode && mode_.synchronous() && !mode_.contested());
}

void WorkDispatcher::SkipCommittedRounds(bool batches_known) {
  while (ledger_.completed_steps() <= committed_rounds_ && !ledger_.Done()) {
    const std::vector<RecordRange> batches =
        ledger_.OpenRound(std::max<int64_t>(mode_.total_replicas, 1));
    ledger_.CompleteRound(batches_known ? batches : std::vector<RecordRange>());
  }
}

void WorkDispatcher::SetMode(const ConsistencyMode& mode) {
  next_mode_.reset();
  if (mode != mode_) next_mode_ = mode;
  ledger_.Touch();
  Settle();
}

void WorkDispatcher::ReleaseMode() {
  --mode_holds_;
  Settle();
}

void WorkDispatcher::EndEarly(std::string reason) {
  if (ends_early()) return;
  end_reason_ = std::move(reason);
  ledger_.Touch();
  Settle();
}

void WorkDispatcher::Pause() {
  paused_ = true;
  Settle();
}

void WorkDispatcher::AddStreamFile(std::string name, int64_t records) {
  ledger_.AddStreamFile(std::move(name), records);
}

void WorkDispatcher::EndStream() { ledger_.EndStream(); }

bool WorkDispatcher::Done() const { return ledger_.Done() || (ends_early() && Idle()); }

void WorkDispatcher::Settle() {
  // If the ledger had leases beside committed rounds, its state is older than a change of the mode.
  if (Idle()) SkipCommittedRounds(/*batches_known=*/false);
  if (Draining()) DropIdleRound();
  ApplyNextMode();
}

void WorkDispatcher::DropIdleRound() {
  if (!rounds_.open() || rounds_.AnyGranted()) return;
  rounds_.Close();
  ledger_.AbandonRound();
}

void WorkDispatcher::ApplyNextMode() {
  if (!next_mode_.has_value() || mode_holds_ > 0 || rounds_.open()) return;
  if (next_mode_->synchronous() && ledger_.AnyLeased()) return;
  EnterMode(*std::exchange(next_mode_, std::nullopt));
}

void WorkDispatcher::EnterMode(const ConsistencyMode& mode) {
  if (mode_.synchronous() && !mode.synchronous()) ++sync_period_;
  mode_ = mode;
  bound_ = StalenessBound(mode.staleness);
  rounds_ = SyncRounds(mode.replicas_to_aggregate);
  ledger_.CountSteps(mode_.batches_per_step());
}

v1::JobState WorkDispatcher::ToState() const {
  v1::JobState state = ledger_.ToState();
  state.set_end_reason(end_reason_);
  *state.mutable_mode() = next_mode_.value_or(mode_).ToProto();
  return state;
}

void WorkDispatcher::ToPersisted(v1::PersistedJobState* persisted) const {
  ledger_.ToPersisted(persisted);
  persisted->set_mode_pending(next_mode_.has_value());
  persisted->set_attempt(attempt_);
  persisted->mutable_job()->set_end_reason(end_reason_);
  *persisted->mutable_job()->mutable_mode() = next_mode_.value_or(mode_).ToProto();
}

}  // namespace keelson
