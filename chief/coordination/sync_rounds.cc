// The same gradients must count at every server. So whether a gradient counts is decided here,
// before it is sent (Admit), never by the servers, which would see them in different orders. A
// gradient that may have reached only some servers cannot be taken back there, so its loss costs
// the whole attempt: values have not changed, and the gradients are computed again (ADR 0012).
#include "chief/coordination/sync_rounds.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <numeric>

namespace keelson {

void SyncRounds::Open(int64_t step, uint32_t attempt, std::vector<RecordRange> batches) {
  assert(!open() && static_cast<int64_t>(batches.size()) >= wanted_);
  step_ = step;
  attempt_ = attempt;
  for (const RecordRange& records : batches) {
    waiting_.insert(tickets_.size());
    tickets_.push_back({records});
  }
  in_state_[kWaiting] = num_tickets();
}

void SyncRounds::Close() {
  tickets_.clear();
  in_state_ = {};
  leased_.clear();
  waiting_.clear();
}

void SyncRounds::Restart(uint32_t attempt) {
  attempt_ = attempt;
  for (size_t ticket = 0; ticket < tickets_.size(); ++ticket) Free(ticket);
}

void SyncRounds::Enter(size_t ticket, State state) {
  --in_state_[tickets_[ticket].state];
  ++in_state_[state];
  tickets_[ticket].state = state;
}

void SyncRounds::Free(size_t ticket) {
  Ticket& freed = tickets_[ticket];
  if (freed.state != kWaiting) leased_.erase({freed.worker, freed.lease_id});
  Enter(ticket, kWaiting);
  freed = {freed.records};
  waiting_.insert(ticket);
}

int64_t SyncRounds::Count(State state) const {
  return std::accumulate(in_state_.begin() + state, in_state_.end(), int64_t{0});
}

int64_t SyncRounds::CountOf(uint64_t worker) const {
  constexpr uint64_t kLeast = 0;
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  return std::distance(leased_.lower_bound({worker, kLeast}), leased_.upper_bound({worker, kMost}));
}

std::optional<size_t> SyncRounds::Find(uint64_t worker, uint64_t lease_id) const {
  const auto leased = leased_.find({worker, lease_id});
  if (leased == leased_.end()) return std::nullopt;
  return leased->second;
}

bool SyncRounds::AnyGranted() const { return Count(kHeld) > 0; }

bool SyncRounds::Holds(uint64_t worker, uint64_t lease_id) const {
  return Find(worker, lease_id).has_value();
}

int64_t SyncRounds::WantedOf(int64_t alive_workers) const {
  return std::clamp(std::max<int64_t>(alive_workers, 1), wanted_, std::max(wanted_, num_tickets()));
}

int64_t SyncRounds::MostOf(int64_t alive_workers) const {
  const int64_t workers = std::max<int64_t>(alive_workers, 1);
  return (WantedOf(alive_workers) + workers - 1) / workers;
}

std::optional<size_t> SyncRounds::FirstWaiting(int64_t alive_workers,
                                               std::optional<int64_t> place) const {
  const auto workers = static_cast<size_t>(std::max<int64_t>(alive_workers, 1));
  const auto first = std::find_if(waiting_.begin(), waiting_.end(), [&](size_t ticket) {
    return !place.has_value() || ticket % workers == static_cast<size_t>(*place);
  });
  return first == waiting_.end() ? std::nullopt : std::make_optional(*first);
}

std::optional<RecordRange> SyncRounds::Grant(uint64_t worker, uint64_t lease_id,
                                             int64_t alive_workers, std::optional<int64_t> place) {
  const bool decided = Count(kAdmitted) >= wanted_;
  if (decided || Count(kHeld) >= WantedOf(alive_workers)) return std::nullopt;
  // Places share the tickets out by themselves, whatever a worker has of before others left.
  const bool has_share = !place.has_value() && CountOf(worker) >= MostOf(alive_workers);
  const std::optional<size_t> ticket = FirstWaiting(alive_workers, place);
  if (has_share || !ticket.has_value()) return std::nullopt;
  waiting_.erase(*ticket);
  Enter(*ticket, contested() ? kHeld : kAdmitted);
  tickets_[*ticket].worker = worker;
  tickets_[*ticket].lease_id = lease_id;
  leased_[{worker, lease_id}] = *ticket;
  return tickets_[*ticket].records;
}

bool SyncRounds::Admit(uint64_t worker, uint64_t lease_id, uint32_t attempt) {
  const std::optional<size_t> ticket = Find(worker, lease_id);
  if (!ticket.has_value() || attempt != attempt_) return false;
  if (tickets_[*ticket].state == kHeld && Count(kAdmitted) < wanted_) Enter(*ticket, kAdmitted);
  return tickets_[*ticket].state >= kAdmitted;
}

bool SyncRounds::Stage(uint64_t worker, uint64_t lease_id) {
  const std::optional<size_t> ticket = Find(worker, lease_id);
  if (!ticket.has_value() || tickets_[*ticket].state < kAdmitted) return false;
  Enter(*ticket, kStaged);
  return true;
}

bool SyncRounds::Refuse(uint64_t worker, uint64_t lease_id, uint32_t attempt) const {
  const std::optional<size_t> ticket = Find(worker, lease_id);
  return ticket.has_value() && attempt == attempt_ && tickets_[*ticket].state == kAdmitted;
}

bool SyncRounds::Lose(uint64_t worker) {
  bool whole = true;
  for (size_t ticket = 0; ticket < tickets_.size(); ++ticket) {
    if (tickets_[ticket].worker != worker) continue;
    if (tickets_[ticket].state == kAdmitted) whole = false;
    if (tickets_[ticket].state == kHeld) Free(ticket);
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
