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

// The number of steps or batches by which an adopted lease may lie beyond the ledger's cursor. Real
// gaps are about a second of work; the limit keeps a damaged message from exhausting this process's
// memory.
constexpr int64_t kLongestGap = 1 << 20;

absl::Status NotTheWorkers(uint64_t worker, uint64_t lease_id) {
  return absl::AbortedError(absl::StrCat("work lease ", lease_id, " is not held by incarnation ",
                                         absl::Hex(worker, absl::kZeroPad16)));
}

}  // namespace

WorkLedger::WorkLedger(WorkOptions options)
    : options_(options), next_lease_id_(options.first_lease_id) {
  assert(options.max_steps >= 0 && options.num_records > 0 && options.batch_size > 0);
  assert(options.first_lease_id != 0);
  if (options_.job_id == 0) options_.job_id = RandomId();
}

RecordSet WorkLedger::Unfinished() const {
  RecordSet unfinished = returned_;
  for (const RecordRange& records : round_) unfinished.Add(records);
  for (const auto& [id, lease] : leases_) {
    for (const WorkTicket& ticket : lease.unfinished()) unfinished.Add(ticket.records());
  }
  return unfinished;
}

int64_t WorkLedger::TakeStep() {
  return free_steps_.empty() ? next_step_++ : free_steps_.extract(free_steps_.begin()).value();
}

RecordRange WorkLedger::TakeRecords() {
  return returned_.empty() ? AdvanceCursor(options_.batch_size) : returned_.TakeFirst();
}

RecordRange WorkLedger::AdvanceCursor(int64_t size) {
  const int64_t end = next_position_ + std::min(size, options_.num_records - next_position_);
  const RecordRange records = {next_epoch_, next_position_, end};
  next_position_ = end;
  if (next_position_ == options_.num_records) {
    ++next_epoch_;
    next_position_ = 0;
  }
  return records;
}

std::optional<WorkLease> WorkLedger::Acquire(uint64_t worker, int64_t max_tickets) {
  assert(round_.empty());
  WorkLease lease;
  while (static_cast<int64_t>(lease.tickets.size()) < max_tickets && !AllHandedOut()) {
    const RecordRange records = TakeRecords();
    lease.tickets.push_back({TakeStep(), records.epoch, records.begin, records.end});
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
    // repetition.
    if (WasGranted(lease_id) && !taken_back_.contains(lease_id)) return absl::OkStatus();
    return NotTheWorkers(worker, lease_id);
  }
  Lease& lease = it->second;
  if (lease.worker != worker) return NotTheWorkers(worker, lease_id);
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

void WorkLedger::GiveBack(absl::Span<const WorkTicket> tickets) {
  for (const WorkTicket& ticket : tickets) {
    free_steps_.insert(ticket.step);
    AddReturned(ticket.records());
  }
}

int64_t WorkLedger::ReleaseIf(absl::FunctionRef<bool(const Lease&)> condition) {
  int64_t released = 0;
  for (auto it = leases_.begin(); it != leases_.end();) {
    const Lease& lease = it->second;
    if (!condition(lease)) {
      ++it;
      continue;
    }
    GiveBack(lease.unfinished());
    released += static_cast<int64_t>(lease.unfinished().size());
    taken_back_.insert(it->first);
    it = leases_.erase(it);
    ++version_;
  }
  return released;
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
  if (lease.id == 0 || size == 0 || lease.completed < 0 || lease.completed > size) return false;
  const int64_t epoch_batches = StepsFor(1, options_.num_records, options_.batch_size);
  RecordSet records;
  for (const WorkTicket& ticket : lease.tickets) {
    if (ticket.step < 0 || ticket.step >= options_.max_steps || ticket.epoch < 0) return false;
    if (ticket.step - next_step_ > kLongestGap) return false;
    if (ticket.epoch - next_epoch_ > kLongestGap / epoch_batches + 1) return false;
    const bool in_epoch =
        0 <= ticket.begin && ticket.begin < ticket.end && ticket.end <= options_.num_records;
    if (!in_epoch || !records.Add(ticket.records())) return false;
  }
  return true;
}

bool WorkLedger::IsFree(const RecordRange& records) const {
  if (records.epoch > next_epoch_) return true;
  RecordRange handed_out = records;
  if (records.epoch == next_epoch_) {
    handed_out.end = std::min(records.end, next_position_);
    handed_out.begin = std::min(records.begin, handed_out.end);
  }
  return returned_.Covers(handed_out);
}

bool WorkLedger::TakeFreeStep(int64_t* step) {
  if (*step >= next_step_) {
    while (next_step_ < *step) free_steps_.insert(next_step_++);
    ++next_step_;
    return true;
  }
  if (free_steps_.erase(*step) > 0) return true;
  if (AllHandedOut()) return false;
  *step = TakeStep();
  return true;
}

void WorkLedger::TakeFreeRecords(const RecordRange& records) {
  while (std::pair(next_epoch_, next_position_) < std::pair(records.epoch, records.begin)) {
    const bool same_epoch = next_epoch_ == records.epoch;
    const int64_t before = same_epoch ? records.begin - next_position_ : options_.batch_size;
    returned_.Add(AdvanceCursor(std::min(options_.batch_size, before)));
  }
  if (next_epoch_ == records.epoch && next_position_ < records.end) {
    AdvanceCursor(records.end - next_position_);
  }
  returned_.Remove(records);
}

bool WorkLedger::TakeFree(WorkTicket* ticket) {
  if (!TakeFreeStep(&ticket->step)) return false;
  TakeFreeRecords(ticket->records());
  return true;
}

void WorkLedger::BookCompleted(absl::Span<const WorkTicket> tickets) {
  for (WorkTicket ticket : tickets) {
    if (!IsFree(ticket.records())) {
      returned_.Remove(ticket.records());
    } else if (TakeFree(&ticket)) {
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
    if (other.worker == worker || !other.from_memory()) continue;
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
  const auto completed = static_cast<size_t>(lease.completed);
  BookCompleted(tickets.subspan(0, completed));
  Lease adopted = {worker, lease.completed, lease.tickets, Lease::kAdopted};
  for (size_t i = completed; i < tickets.size(); ++i) {
    if (IsFree(tickets[i].records()) && TakeFree(&adopted.tickets[i])) continue;
    GiveBack(absl::MakeConstSpan(adopted.tickets).subspan(completed, i - completed));
    return false;
  }
  if (completed < tickets.size()) leases_[lease.id] = std::move(adopted);
  return true;
}

std::vector<RecordRange> WorkLedger::OpenRound(int64_t tickets) {
  assert(leases_.empty() && round_.empty());
  // The numbers of steps that came back are dropped: rounds number steps without gaps.
  free_steps_.clear();
  next_step_ = completed_steps_;
  for (int64_t wanted = tickets; wanted > 0; --wanted) {
    if (!returned_.empty()) {
      round_.push_back(returned_.TakeFirst());
      continue;
    }
    const int64_t share = (options_.num_records - next_position_ + wanted - 1) / wanted;
    round_.push_back(AdvanceCursor(std::min(options_.batch_size, share)));
  }
  ++version_;
  return round_;
}

void WorkLedger::CompleteRound(absl::Span<const RecordRange> used) {
  for (const RecordRange& records : round_) {
    if (std::find(used.begin(), used.end(), records) == used.end()) AddReturned(records);
  }
  round_.clear();
  next_step_ = ++completed_steps_;
  ++version_;
}

void WorkLedger::AbandonRound() {
  for (const RecordRange& records : round_) AddReturned(records);
  round_.clear();
  ++version_;
}

int64_t WorkLedger::FirstUnfinishedStep() const {
  int64_t first = round_open() ? std::min(completed_steps_, next_step_) : next_step_;
  if (!free_steps_.empty()) first = std::min(first, *free_steps_.begin());
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

double WorkLedger::epochs_completed() const {
  int64_t undone = returned_.size();
  for (const RecordRange& records : round_) undone += records.size();
  for (const auto& [id, lease] : leases_) {
    for (const WorkTicket& ticket : lease.unfinished()) undone += ticket.end - ticket.begin;
  }
  return static_cast<double>(next_epoch_) +
         static_cast<double>(next_position_ - undone) / static_cast<double>(options_.num_records);
}

int64_t WorkLedger::StepsFor(int64_t epochs, int64_t num_records, int64_t batch_size) {
  return epochs * (num_records / batch_size + (num_records % batch_size != 0 ? 1 : 0));
}

}  // namespace keelson
