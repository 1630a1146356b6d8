#include "core/cluster/work_ledger.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status StateError(absl::string_view field, absl::string_view expected, int64_t found) {
  return absl::DataLossError(
      absl::StrCat("_keelson/job: ", field, ": expected ", expected, ", found ", found));
}

absl::Status NotTheWorkers(uint64_t worker, uint64_t lease_id) {
  return absl::AbortedError(absl::StrCat("work lease ", lease_id, " is not held by incarnation ",
                                         absl::Hex(worker, absl::kZeroPad16)));
}

// A range lies before the cursor, within its epoch.
absl::Status CheckRange(const v1::JobState& state, int index) {
  const v1::JobState::Range& range = state.unfinished(index);
  const std::string field = absl::StrCat("unfinished[", index, "]");
  if (range.epoch() < 0 || range.epoch() > state.next_epoch()) {
    return StateError(field + ".epoch", absl::StrCat("[0, ", state.next_epoch(), "]"),
                      range.epoch());
  }
  const int64_t limit =
      range.epoch() == state.next_epoch() ? state.next_position() : state.num_records();
  if (range.end() > limit) {
    return StateError(field + ".end", absl::StrCat("<= ", limit), range.end());
  }
  if (range.begin() < 0 || range.begin() >= range.end()) {
    return StateError(field + ".begin", absl::StrCat("[0, ", range.end(), ")"), range.begin());
  }
  return absl::OkStatus();
}

absl::Status CheckNoOverlap(const v1::JobState& state) {
  std::vector<v1::JobState::Range> ranges(state.unfinished().begin(), state.unfinished().end());
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
    return std::pair(a.epoch(), a.begin()) < std::pair(b.epoch(), b.begin());
  });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].epoch() == ranges[i - 1].epoch() && ranges[i].begin() < ranges[i - 1].end()) {
      return absl::DataLossError(
          absl::StrCat("_keelson/job: unfinished: expected ranges without overlap, found epoch ",
                       ranges[i].epoch(), " position ", ranges[i].begin(), " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckState(const v1::JobState& state) {
  if (state.global_step() < 0) return StateError("global_step", ">= 0", state.global_step());
  if (state.num_records() < 0) return StateError("num_records", ">= 0", state.num_records());
  if (state.next_epoch() < 0) return StateError("next_epoch", ">= 0", state.next_epoch());
  // An empty state has no records.
  const int64_t end = std::max<int64_t>(state.num_records(), 1);
  if (state.next_position() < 0 || state.next_position() >= end) {
    return StateError("next_position", absl::StrCat("[0, ", end, ")"), state.next_position());
  }
  for (int i = 0; i < state.unfinished_size(); ++i) RETURN_IF_ERROR(CheckRange(state, i));
  return CheckNoOverlap(state);
}

}  // namespace

WorkLedger::WorkLedger(WorkOptions options)
    : options_(options), next_lease_id_(options.first_lease_id) {
  assert(options.max_steps >= 0 && options.num_records > 0 && options.batch_size > 0);
  assert(options.first_lease_id != 0);
}

absl::StatusOr<WorkLedger> WorkLedger::FromState(const v1::JobState& state, WorkOptions options) {
  RETURN_IF_ERROR(CheckState(state));
  WorkLedger ledger(options);
  ledger.completed_steps_ = state.global_step();
  ledger.next_step_ = state.global_step();
  ledger.AdoptCursor(state);
  if (state.num_records() == options.num_records) ledger.AdoptUnfinished(state);
  return ledger;
}

void WorkLedger::AdoptCursor(const v1::JobState& state) {
  next_epoch_ = state.next_epoch();
  next_position_ = state.next_position();
  if (state.num_records() != options_.num_records && next_position_ > 0) {
    ++next_epoch_;
    next_position_ = 0;
  }
}

void WorkLedger::AdoptUnfinished(const v1::JobState& state) {
  for (const v1::JobState::Range& range : state.unfinished()) {
    int64_t begin = range.begin();
    while (begin < range.end() && next_step_ < options_.max_steps) {
      const int64_t end = begin + std::min(options_.batch_size, range.end() - begin);
      returned_[next_step_] = {next_step_, range.epoch(), begin, end};
      ++next_step_;
      begin = end;
    }
  }
}

v1::JobState WorkLedger::ToState() const {
  v1::JobState state;
  state.set_global_step(completed_steps_);
  state.set_next_epoch(next_epoch_);
  state.set_next_position(next_position_);
  for (const WorkTicket& ticket : Unfinished()) {
    v1::JobState::Range* const range = state.add_unfinished();
    range->set_epoch(ticket.epoch);
    range->set_begin(ticket.begin);
    range->set_end(ticket.end);
  }
  state.set_batch_size(options_.batch_size);
  state.set_num_records(options_.num_records);
  return state;
}

std::vector<WorkTicket> WorkLedger::Unfinished() const {
  std::map<int64_t, WorkTicket> unfinished = returned_;
  for (const auto& [id, lease] : leases_) {
    for (size_t i = static_cast<size_t>(lease.completed); i < lease.tickets.size(); ++i) {
      unfinished[lease.tickets[i].step] = lease.tickets[i];
    }
  }
  std::vector<WorkTicket> tickets;
  for (const auto& [step, ticket] : unfinished) tickets.push_back(ticket);
  return tickets;
}

WorkTicket WorkLedger::NextTicket() {
  if (!returned_.empty()) return returned_.extract(returned_.begin()).mapped();
  const int64_t end =
      next_position_ + std::min(options_.batch_size, options_.num_records - next_position_);
  const WorkTicket ticket = {next_step_++, next_epoch_, next_position_, end};
  next_position_ = end;
  if (next_position_ == options_.num_records) {
    ++next_epoch_;
    next_position_ = 0;
  }
  return ticket;
}

std::optional<WorkLease> WorkLedger::Acquire(uint64_t worker, int64_t max_tickets) {
  std::vector<WorkTicket> tickets;
  while (static_cast<int64_t>(tickets.size()) < max_tickets && !AllHandedOut()) {
    tickets.push_back(NextTicket());
  }
  if (tickets.empty()) return std::nullopt;
  const uint64_t id = next_lease_id_++;
  leases_[id] = {worker, 0, tickets};
  return WorkLease{id, std::move(tickets)};
}

absl::Status WorkLedger::Complete(uint64_t worker, uint64_t lease_id, int64_t completed) {
  const auto it = leases_.find(lease_id);
  if (it == leases_.end()) {
    // Granted, not held, not taken back: it was completed, and this is a repetition.
    const bool granted = lease_id >= options_.first_lease_id && lease_id < next_lease_id_;
    if (granted && !taken_back_.contains(lease_id)) return absl::OkStatus();
    return NotTheWorkers(worker, lease_id);
  }
  Lease& lease = it->second;
  if (lease.worker != worker) return NotTheWorkers(worker, lease_id);
  const int64_t size = static_cast<int64_t>(lease.tickets.size());
  if (completed < 0 || completed > size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "work lease ", lease_id, ": completed: expected [0, ", size, "], found ", completed));
  }
  completed_steps_ += std::max<int64_t>(completed - lease.completed, 0);
  lease.completed = std::max(lease.completed, completed);
  if (lease.completed == size) leases_.erase(it);
  return absl::OkStatus();
}

int64_t WorkLedger::Release(uint64_t worker) {
  int64_t released = 0;
  for (auto it = leases_.begin(); it != leases_.end();) {
    const Lease& lease = it->second;
    if (lease.worker != worker) {
      ++it;
      continue;
    }
    for (size_t i = static_cast<size_t>(lease.completed); i < lease.tickets.size(); ++i) {
      returned_[lease.tickets[i].step] = lease.tickets[i];
      ++released;
    }
    taken_back_.insert(it->first);
    it = leases_.erase(it);
  }
  return released;
}

double WorkLedger::epochs_completed() const {
  int64_t undone = 0;
  for (const WorkTicket& ticket : Unfinished()) undone += ticket.end - ticket.begin;
  return static_cast<double>(next_epoch_) +
         static_cast<double>(next_position_ - undone) / static_cast<double>(options_.num_records);
}

int64_t WorkLedger::StepsFor(int64_t epochs, int64_t num_records, int64_t batch_size) {
  return epochs * (num_records / batch_size + (num_records % batch_size != 0 ? 1 : 0));
}

}  // namespace keelson
