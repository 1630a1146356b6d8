// Steps and records come back separately, because they promise different things: any free number
// does for a step, since only their count matters (max_steps), but each range of records must be
// used once per epoch, also after the batch size or the mode has changed. A worker's report of its
// lease counts more than state persisted by a predecessor (Adopt): that state may be a second old,
// and a worker that holds a lease was certainly granted it (ADR 0003, ADR 0010).
#include "chief/coordination/work_ledger.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/random.h"

namespace keelson {
namespace {

absl::Status NotTheWorkers(uint64_t lease_id) {
  return absl::AbortedError(absl::StrCat("work lease ", lease_id, " is not held by the caller"));
}

}  // namespace

WorkLedger::WorkLedger(WorkOptions options)
    : options_(options), pool_(options), next_lease_id_(options.first_lease_id) {
  assert(options.max_steps >= 0 && options.num_records > 0 && options.batch_size > 0);
  assert(options.first_lease_id != 0);
  if (options_.job_id == 0) options_.job_id = RandomId();
}

RecordSet WorkLedger::Unfinished() const {
  RecordSet unfinished = pool_.returned();
  for (const RecordRange& records : round_) unfinished.Add(records);
  for (const auto& [id, lease] : leases_) {
    for (const WorkTicket& ticket : lease.unfinished()) unfinished.Add(ticket.records());
  }
  return unfinished;
}

std::optional<WorkLease> WorkLedger::Acquire(uint64_t worker, int64_t max_tickets) {
  assert(round_.empty());
  WorkLease lease;
  while (static_cast<int64_t>(lease.tickets.size()) < max_tickets && !AllHandedOut()) {
    lease.tickets.push_back(pool_.Take());
  }
  if (lease.tickets.empty()) return std::nullopt;
  lease.id = NewLeaseId();
  leases_[lease.id] = {worker, 0, lease.tickets, Lease::kGranted};
  ++version_;
  return lease;
}

bool WorkLedger::WasGranted(uint64_t lease_id) const {
  return lease_id >= options_.first_lease_id && lease_id < next_lease_id_;
}

absl::Status WorkLedger::Complete(uint64_t worker, uint64_t lease_id, int64_t completed) {
  const auto it = leases_.find(lease_id);
  if (it == leases_.end()) {
    // A lease that was granted, is not held and was not taken back is complete: this report is a
    // repetition. Of those before `unknown_before_` nobody knows which it was, and for a complete
    // one the answer makes no difference.
    const bool known = WasGranted(lease_id) && lease_id >= unknown_before_;
    if (known && !taken_back_.contains(lease_id)) return absl::OkStatus();
    return NotTheWorkers(lease_id);
  }
  Lease& lease = it->second;
  if (lease.worker != worker) return NotTheWorkers(lease_id);
  if (completed < 0 || completed > lease.size()) {
    return absl::InvalidArgumentError(absl::StrCat("work lease ", lease_id,
                                                   ": completed: expected [0, ", lease.size(),
                                                   "], found ", completed));
  }
  if (completed <= lease.completed) return absl::OkStatus();
  completed_steps_ += completed - lease.completed;
  lease.completed = completed;
  if (lease.completed == lease.size()) leases_.erase(it);
  ++version_;
  return absl::OkStatus();
}

int64_t WorkLedger::ReleaseIf(absl::FunctionRef<bool(const Lease&)> condition) {
  int64_t released = 0;
  for (auto it = leases_.begin(); it != leases_.end();) {
    const Lease& lease = it->second;
    if (!condition(lease)) {
      ++it;
      continue;
    }
    pool_.Add(lease.unfinished());
    released += static_cast<int64_t>(lease.unfinished().size());
    NoteTakenBack(it->first);
    it = leases_.erase(it);
    ++version_;
  }
  return released;
}

void WorkLedger::NoteTakenBack(uint64_t lease_id) {
  taken_back_.insert(lease_id);
  if (taken_back_.size() <= kMostTakenBack) return;
  // Those of a predecessor stay: Adopt knows them by nothing else, and there are no more of them
  // than it had granted at its end.
  const auto oldest = taken_back_.lower_bound(options_.first_lease_id);
  if (oldest == taken_back_.end() || !WasGranted(*oldest)) return;
  unknown_before_ = *oldest + 1;
  taken_back_.erase(oldest);
}

int64_t WorkLedger::Release(uint64_t worker) {
  return ReleaseIf([&](const Lease& lease) { return lease.worker == worker; });
}

int64_t WorkLedger::ReleaseUnconfirmed(uint64_t worker) {
  return ReleaseIf([&](const Lease& lease) {
    return lease.worker == worker && lease.origin == Lease::kInherited;
  });
}

bool WorkLedger::Confirm(uint64_t worker, const HeldLease& lease) {
  const auto it = leases_.find(lease.id);
  if (it != leases_.end() && it->second.worker == worker &&
      it->second.origin == Lease::kInherited) {
    it->second.origin = Lease::kConfirmed;
  }
  return Complete(worker, lease.id, lease.completed).ok();
}

bool WorkLedger::IsSane(const HeldLease& lease) const {
  const int64_t size = static_cast<int64_t>(lease.tickets.size());
  return lease.id != 0 && size > 0 && 0 <= lease.completed && lease.completed <= size &&
         pool_.Plausible(lease.tickets);
}

void WorkLedger::CountCompleted(absl::Span<const WorkTicket> tickets) {
  for (WorkTicket ticket : tickets) {
    if (!pool_.Has(ticket.records())) {
      pool_.RemoveReturned(ticket.records());
    } else if (pool_.TakeTicket(&ticket)) {
      ++completed_steps_;
    }
  }
}

void WorkLedger::ReleaseSuperseded(uint64_t worker, const HeldLease& lease,
                                   std::vector<uint64_t>* superseded) {
  RecordSet claimed;
  for (const WorkTicket& ticket : lease.tickets) claimed.Add(ticket.records());
  std::set<uint64_t> losers;
  for (const auto& [id, other] : leases_) {
    if (other.worker == worker || !other.from_predecessor()) continue;
    for (const WorkTicket& ticket : other.unfinished()) {
      if (claimed.Intersects(ticket.records())) losers.insert(other.worker);
    }
  }
  for (const uint64_t loser : losers) Release(loser);
  superseded->insert(superseded->end(), losers.begin(), losers.end());
}

bool WorkLedger::Adopt(uint64_t worker, const HeldLease& lease, std::vector<uint64_t>* superseded) {
  const bool known = leases_.contains(lease.id) || WasGranted(lease.id);
  if (known || taken_back_.contains(lease.id) || !IsSane(lease)) return false;
  assert(round_.empty());
  ++version_;
  ReleaseSuperseded(worker, lease, superseded);
  const auto tickets = absl::MakeConstSpan(lease.tickets);
  const size_t completed = lease.completed;
  CountCompleted(tickets.subspan(0, completed));
  Lease adopted = {worker, lease.completed, lease.tickets, Lease::kAdopted};
  for (size_t i = completed; i < tickets.size(); ++i) {
    if (pool_.Has(tickets[i].records()) && pool_.TakeTicket(&adopted.tickets[i])) continue;
    pool_.Add(absl::MakeConstSpan(adopted.tickets).subspan(completed, i - completed));
    return false;
  }
  if (completed < tickets.size()) leases_[lease.id] = std::move(adopted);
  return true;
}

std::vector<RecordRange> WorkLedger::OpenRound(int64_t tickets) {
  assert(leases_.empty() && round_.empty());
  // Rounds number steps without gaps.
  pool_.RestartSteps(completed_steps_);
  round_ = pool_.TakeBatches(tickets);
  ++version_;
  return round_;
}

void WorkLedger::CompleteRound(absl::Span<const RecordRange> used) {
  for (const RecordRange& records : round_) {
    if (std::find(used.begin(), used.end(), records) == used.end()) pool_.AddRecords(records);
  }
  round_.clear();
  pool_.RestartSteps(++completed_steps_);
  ++version_;
}

void WorkLedger::AbandonRound() {
  for (const RecordRange& records : round_) pool_.AddRecords(records);
  round_.clear();
  ++version_;
}

int64_t WorkLedger::FirstUnfinishedStep() const {
  int64_t first = pool_.free_steps().empty() ? pool_.next_step() : *pool_.free_steps().begin();
  if (round_open()) first = std::min(first, completed_steps_);
  for (const auto& [id, lease] : leases_) {
    for (const WorkTicket& ticket : lease.unfinished()) first = std::min(first, ticket.step);
  }
  return first;
}

int64_t WorkLedger::Outstanding(uint64_t worker) const {
  int64_t outstanding = 0;
  for (const auto& [id, lease] : leases_) {
    if (lease.worker == worker) outstanding += static_cast<int64_t>(lease.unfinished().size());
  }
  return outstanding;
}

void WorkLedger::AddOwing(std::set<uint64_t>* workers) const {
  for (const auto& [id, lease] : leases_) {
    if (!lease.unfinished().empty()) workers->insert(lease.worker);
  }
}

double WorkLedger::epochs_completed() const {
  int64_t undone = pool_.returned().size();
  for (const RecordRange& records : round_) undone += records.size();
  for (const auto& [id, lease] : leases_) {
    for (const WorkTicket& ticket : lease.unfinished()) undone += ticket.end - ticket.begin;
  }
  return static_cast<double>(pool_.next_epoch()) +
         static_cast<double>(pool_.next_position() - undone) /
             static_cast<double>(options_.num_records);
}

}  // namespace keelson
