#include "chief/coordination/lease_book.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

absl::Status NotTheWorkers(uint64_t lease_id) {
  return absl::AbortedError(absl::StrCat("work lease ", lease_id, " is not held by the caller"));
}

}  // namespace

absl::StatusOr<int64_t> LeaseBook::Complete(uint64_t worker, uint64_t id, int64_t completed) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    // A lease that was granted, is not held and was not taken back is complete: this report is a
    // repetition. Of those before `unknown_before_` nobody knows which it was, and for a complete
    // one the answer makes no difference.
    const bool known = WasGranted(id) && id >= unknown_before_;
    if (known && !taken_back_.contains(id)) return 0;
    return NotTheWorkers(id);
  }
  Lease& lease = it->second;
  if (lease.worker != worker) return NotTheWorkers(id);
  if (completed < 0 || completed > lease.size()) {
    return absl::InvalidArgumentError(absl::StrCat("work lease ", id, ": completed: expected [0, ",
                                                   lease.size(), "], found ", completed));
  }
  if (completed <= lease.completed) return 0;
  const int64_t more = completed - lease.completed;
  lease.completed = completed;
  if (lease.completed == lease.size()) leases_.erase(it);
  return more;
}

void LeaseBook::Confirm(uint64_t worker, uint64_t id) {
  const auto it = leases_.find(id);
  if (it == leases_.end() || it->second.worker != worker) return;
  if (it->second.origin == Lease::kInherited) it->second.origin = Lease::kConfirmed;
}

LeaseBook::TakenBack LeaseBook::TakeBack(absl::FunctionRef<bool(const Lease&)> condition) {
  TakenBack taken;
  for (auto it = leases_.begin(); it != leases_.end();) {
    const Lease& lease = it->second;
    if (!condition(lease)) {
      ++it;
      continue;
    }
    taken.tickets.insert(taken.tickets.end(), lease.unfinished().begin(), lease.unfinished().end());
    ++taken.leases;
    NoteTakenBack(it->first);
    it = leases_.erase(it);
  }
  return taken;
}

void LeaseBook::NoteTakenBack(uint64_t id) {
  taken_back_.insert(id);
  if (taken_back_.size() <= kMostTakenBack) return;
  // Those of a predecessor stay: WorkLedger::Adopt knows them by nothing else, and there are no
  // more of them than it had granted at its end.
  const auto oldest = taken_back_.lower_bound(first_id_);
  if (oldest == taken_back_.end() || !WasGranted(*oldest)) return;
  unknown_before_ = *oldest + 1;
  taken_back_.erase(oldest);
}

void LeaseBook::ForEachUnfinished(absl::FunctionRef<void(const WorkTicket&)> visit) const {
  for (const auto& [id, lease] : leases_) {
    for (const WorkTicket& ticket : lease.unfinished()) visit(ticket);
  }
}

int64_t LeaseBook::Outstanding(uint64_t worker) const {
  int64_t outstanding = 0;
  for (const auto& [id, lease] : leases_) {
    if (lease.worker == worker) outstanding += static_cast<int64_t>(lease.unfinished().size());
  }
  return outstanding;
}

void LeaseBook::AddOwing(std::set<uint64_t>* workers) const {
  for (const auto& [id, lease] : leases_) {
    if (!lease.unfinished().empty()) workers->insert(lease.worker);
  }
}

std::set<uint64_t> LeaseBook::InheritorsOf(const RecordSet& records, uint64_t but) const {
  std::set<uint64_t> inheritors;
  for (const auto& [id, lease] : leases_) {
    if (lease.worker == but || !lease.from_predecessor()) continue;
    for (const WorkTicket& ticket : lease.unfinished()) {
      if (records.Intersects(ticket.records())) inheritors.insert(lease.worker);
    }
  }
  return inheritors;
}

}  // namespace keelson
