// The same gradients must count at every server. So whether a gradient counts is decided here,
// before it is sent (Admit), never by the servers, which would see them in different orders. A
// gradient that may have reached only some servers cannot be taken back there, so its loss costs
// the whole attempt: values have not changed, and the gradients are computed again (ADR 0012).
#include "chief/coordination/sync_rounds.h"

#include <algorithm>
#include <cassert>

namespace keelson {

void SyncRounds::Open(int64_t step, uint32_t attempt, std::vector<RecordRange> batches) {
  assert(!open() && static_cast<int64_t>(batches.size()) >= wanted_);
  step_ = step;
  attempt_ = attempt;
  for (const RecordRange& records : batches) tickets_.push_back({records});
}

void SyncRounds::Restart(uint32_t attempt) {
  attempt_ = attempt;
  for (Ticket& ticket : tickets_) ticket = {ticket.records};
}

int64_t SyncRounds::Count(State state) const {
  return std::count_if(tickets_.begin(), tickets_.end(),
                       [&](const Ticket& ticket) { return ticket.state >= state; });
}

int64_t SyncRounds::CountOf(uint64_t worker) const {
  return std::count_if(tickets_.begin(), tickets_.end(), [&](const Ticket& ticket) {
    return ticket.state != kWaiting && ticket.worker == worker;
  });
}

const SyncRounds::Ticket* SyncRounds::Find(uint64_t worker, uint64_t lease_id) const {
  for (const Ticket& ticket : tickets_) {
    const bool is_it =
        ticket.state != kWaiting && ticket.worker == worker && ticket.lease_id == lease_id;
    if (is_it) return &ticket;
  }
  return nullptr;
}

SyncRounds::Ticket* SyncRounds::Find(uint64_t worker, uint64_t lease_id) {
  return const_cast<Ticket*>(std::as_const(*this).Find(worker, lease_id));
}

bool SyncRounds::AnyGranted() const { return Count(kHeld) > 0; }

bool SyncRounds::Holds(uint64_t worker, uint64_t lease_id) const {
  return Find(worker, lease_id) != nullptr;
}

std::optional<RecordRange> SyncRounds::Grant(uint64_t worker, uint64_t lease_id,
                                             int64_t alive_workers) {
  const int64_t workers = std::max<int64_t>(alive_workers, 1);
  const int64_t wanted = std::clamp(workers, wanted_, std::max(wanted_, num_tickets()));
  const int64_t share = (wanted + workers - 1) / workers;
  const bool decided = Count(kAdmitted) >= wanted_;
  if (decided || Count(kHeld) >= wanted || CountOf(worker) >= share) return std::nullopt;
  const auto waiting = std::find_if(tickets_.begin(), tickets_.end(),
                                    [](const Ticket& ticket) { return ticket.state == kWaiting; });
  if (waiting == tickets_.end()) return std::nullopt;
  *waiting = {waiting->records, contested() ? kHeld : kAdmitted, worker, lease_id};
  return waiting->records;
}

bool SyncRounds::Admit(uint64_t worker, uint64_t lease_id, uint32_t attempt) {
  Ticket* const ticket = Find(worker, lease_id);
  if (ticket == nullptr || attempt != attempt_) return false;
  if (ticket->state == kHeld && Count(kAdmitted) < wanted_) ticket->state = kAdmitted;
  return ticket->state >= kAdmitted;
}

bool SyncRounds::Stage(uint64_t worker, uint64_t lease_id) {
  Ticket* const ticket = Find(worker, lease_id);
  if (ticket == nullptr || ticket->state < kAdmitted) return false;
  ticket->state = kStaged;
  return true;
}

bool SyncRounds::Refuse(uint64_t worker, uint64_t lease_id, uint32_t attempt) const {
  const Ticket* const ticket = Find(worker, lease_id);
  return ticket != nullptr && attempt == attempt_ && ticket->state == kAdmitted;
}

bool SyncRounds::Lose(uint64_t worker) {
  bool whole = true;
  for (Ticket& ticket : tickets_) {
    if (ticket.worker != worker) continue;
    if (ticket.state == kAdmitted) whole = false;
    if (ticket.state == kHeld) ticket = {ticket.records};
  }
  return whole;
}

void SyncRounds::AddOwing(std::set<uint64_t>* workers) const {
  const bool decided = Count(kAdmitted) >= wanted_;
  for (const Ticket& ticket : tickets_) {
    if (ticket.state == kAdmitted || (ticket.state == kHeld && !decided)) {
      workers->insert(ticket.worker);
    }
  }
}

std::optional<SyncRounds::Round> SyncRounds::Staged() const {
  if (!open() || Count(kStaged) < wanted_) return std::nullopt;
  return Round{step_, attempt_, static_cast<uint32_t>(wanted_)};
}

std::vector<RecordRange> SyncRounds::StagedBatches() const {
  std::vector<RecordRange> batches;
  for (const Ticket& ticket : tickets_) {
    if (ticket.state == kStaged) batches.push_back(ticket.records);
  }
  return batches;
}

}  // namespace keelson
