// Steps and records come back separately, because they promise different things: any free number
// does for a step, since only their count matters (max_steps), but each range of records must be
// used once per epoch, also after the batch size or the mode has changed. A worker's report of its
// lease counts more than state persisted by a predecessor (Adopt): that state may be a second old,
// and a worker that holds a lease was certainly granted it (ADR 0003, ADR 0010).
#include "chief/coordination/work_ledger.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {

WorkLedger::WorkLedger(WorkOptions options)
    : options_(options), pool_(options), leases_(options.first_lease_id) {
  assert(options.max_steps >= 0 && options.num_records > 0 && options.batch_size > 0);
  assert(options.first_lease_id != 0);
  if (options_.job_id == 0) options_.job_id = RandomId();
}

RecordSet WorkLedger::Unfinished() const {
  RecordSet unfinished = pool_.returned();
  for (const RecordRange& records : round_) unfinished.Add(records);
  leases_.ForEachUnfinished([&](const WorkTicket& ticket) { unfinished.Add(ticket.records()); });
  return unfinished;
}

void WorkLedger::CountSteps(int64_t batches_per_step) {
  if (options_.epochs == 0) return;
  assert(round_.empty());
  int64_t leased = 0;
  leases_.ForEachUnfinished([&leased](const WorkTicket&) { ++leased; });
  options_.max_steps =
      completed_steps_ + leased + pool_.StepsLeftOf(options_.epochs, batches_per_step);
  pool_.SetMaxSteps(options_.max_steps);
}

std::optional<WorkLease> WorkLedger::Acquire(uint64_t worker, int64_t max_tickets) {
  assert(round_.empty());
  WorkLease lease;
  while (static_cast<int64_t>(lease.tickets.size()) < max_tickets && !AllHandedOut()) {
    lease.tickets.push_back(pool_.Take());
  }
  if (lease.tickets.empty()) return std::nullopt;
  for (const WorkTicket& ticket : lease.tickets) {
    stream_files_.AddFilesOf(ticket.records(), &lease.stream_files);
  }
  lease.id = NewLeaseId();
  leases_.Add(lease.id, {worker, 0, lease.tickets, LeaseBook::Lease::kGranted});
  ++version_;
  return lease;
}

absl::Status WorkLedger::Complete(uint64_t worker, uint64_t lease_id, int64_t completed) {
  ASSIGN_OR_RETURN(const int64_t more, leases_.Complete(worker, lease_id, completed));
  if (more == 0) return absl::OkStatus();
  completed_steps_ += more;
  ++version_;
  return absl::OkStatus();
}

int64_t WorkLedger::PutBack(const LeaseBook::TakenBack& taken) {
  pool_.Add(taken.tickets);
  version_ += taken.leases;
  return static_cast<int64_t>(taken.tickets.size());
}

int64_t WorkLedger::Release(uint64_t worker) {
  return PutBack(
      leases_.TakeBack([&](const LeaseBook::Lease& lease) { return lease.worker == worker; }));
}

int64_t WorkLedger::ReleaseUnconfirmed(uint64_t worker) {
  return PutBack(leases_.TakeBack([&](const LeaseBook::Lease& lease) {
    return lease.worker == worker && lease.origin == LeaseBook::Lease::kInherited;
  }));
}

bool WorkLedger::Confirm(uint64_t worker, const HeldLease& lease) {
  leases_.Confirm(worker, lease.id);
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
  const std::set<uint64_t> losers = leases_.InheritorsOf(claimed, /*but=*/worker);
  for (const uint64_t loser : losers) Release(loser);
  superseded->insert(superseded->end(), losers.begin(), losers.end());
}

bool WorkLedger::Adopt(uint64_t worker, const HeldLease& lease, std::vector<uint64_t>* superseded) {
  const bool known = leases_.Holds(lease.id) || leases_.WasGranted(lease.id);
  if (known || leases_.WasTakenBack(lease.id) || !IsSane(lease)) return false;
  assert(round_.empty());
  ++version_;
  ReleaseSuperseded(worker, lease, superseded);
  const auto tickets = absl::MakeConstSpan(lease.tickets);
  const size_t completed = lease.completed;
  CountCompleted(tickets.subspan(0, completed));
  LeaseBook::Lease adopted = {worker, lease.completed, lease.tickets, LeaseBook::Lease::kAdopted};
  for (size_t i = completed; i < tickets.size(); ++i) {
    if (pool_.Has(tickets[i].records()) && pool_.TakeTicket(&adopted.tickets[i])) continue;
    pool_.Add(absl::MakeConstSpan(adopted.tickets).subspan(completed, i - completed));
    return false;
  }
  if (completed < tickets.size()) leases_.Add(lease.id, std::move(adopted));
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
  leases_.ForEachUnfinished(
      [&](const WorkTicket& ticket) { first = std::min(first, ticket.step); });
  return first;
}

void WorkLedger::AddStreamFile(std::string name, int64_t records) {
  stream_files_.ForgetBefore(FirstUndoneRecord());
  stream_files_.Add(std::move(name), records);
  pool_.SetKnown(stream_files_.known());
  ++version_;
}

void WorkLedger::EndStream() {
  pool_.EndStream();
  ++version_;
}

int64_t WorkLedger::FirstUndoneRecord() const {
  const RecordSet unfinished = Unfinished();
  return unfinished.empty() ? pool_.next_position() : unfinished.First().begin;
}

int64_t WorkLedger::DoneRecords() const { return pool_.next_position() - Unfinished().size(); }

bool WorkLedger::StreamIsDone() const {
  return pool_.StreamIsUsedUp() && leases_.empty() && round_.empty();
}

double WorkLedger::epochs_completed() const {
  if (options_.stream) return 0;
  int64_t undone = pool_.returned().size();
  for (const RecordRange& records : round_) undone += records.size();
  leases_.ForEachUnfinished([&](const WorkTicket& ticket) { undone += ticket.end - ticket.begin; });
  return static_cast<double>(pool_.next_epoch()) +
         static_cast<double>(pool_.next_position() - undone) /
             static_cast<double>(options_.num_records);
}

}  // namespace keelson
