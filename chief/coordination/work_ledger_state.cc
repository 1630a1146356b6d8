// Writes and reads the two forms in which the ledger outlives a chief: JobState and ChiefMemory.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chief/coordination/work_ledger.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// More changes than a chief makes between two stores of its state.
constexpr uint64_t kVersionsPerChief = uint64_t{1} << 32;
absl::Status StateError(absl::string_view field, absl::string_view expected, int64_t found) {
  return absl::DataLossError(
      absl::StrCat("_keelson/job: ", field, ": expected ", expected, ", found ", found));
}

// Checks that a range lies before the cursor, within its epoch.
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

absl::Status MemoryError(absl::string_view field, absl::string_view expected, int64_t found) {
  return absl::DataLossError(
      absl::StrCat("memory: ", field, ": expected ", expected, ", found ", found));
}

// Positions are valid only for the same number of records and the same batch size.
absl::Status CheckMemoryOptions(const v1::JobState& job, const WorkOptions& options) {
  if (job.num_records() != options.num_records) {
    return MemoryError("job.num_records", absl::StrCat(options.num_records), job.num_records());
  }
  if (job.batch_size() != options.batch_size) {
    return MemoryError("job.batch_size", absl::StrCat(options.batch_size), job.batch_size());
  }
  return absl::OkStatus();
}

// Checks that a ticket lies before the cursor, within its epoch, and has records unless
// `may_be_empty`.
absl::Status CheckMemoryTicket(const std::string& field, const v1::ChiefMemory& memory,
                               const v1::ChiefMemory::Ticket& ticket, bool may_be_empty) {
  const v1::JobState& job = memory.job();
  if (ticket.step() < 0 || ticket.step() >= memory.next_step()) {
    return MemoryError(field + ".step", absl::StrCat("[0, ", memory.next_step(), ")"),
                       ticket.step());
  }
  if (ticket.epoch() < 0 || ticket.epoch() > job.next_epoch()) {
    return MemoryError(field + ".epoch", absl::StrCat("[0, ", job.next_epoch(), "]"),
                       ticket.epoch());
  }
  const int64_t limit =
      ticket.epoch() == job.next_epoch() ? job.next_position() : job.num_records();
  if (ticket.begin() < 0 || ticket.end() > limit) {
    return MemoryError(field + ".end", absl::StrCat("<= ", limit), ticket.end());
  }
  if (ticket.end() - ticket.begin() < (may_be_empty ? 0 : 1)) {
    return MemoryError(field + ".begin", absl::StrCat("< ", ticket.end()), ticket.begin());
  }
  return absl::OkStatus();
}

absl::Status CheckMemoryTickets(const v1::ChiefMemory& memory) {
  for (int i = 0; i < memory.returned_size(); ++i) {
    RETURN_IF_ERROR(CheckMemoryTicket(absl::StrCat("returned[", i, "]"), memory, memory.returned(i),
                                      /*may_be_empty=*/true));
  }
  for (const v1::ChiefMemory::Lease& lease : memory.leases()) {
    const std::string field = absl::StrCat("leases[", lease.lease_id(), "]");
    if (lease.completed() < 0 || lease.completed() >= lease.tickets_size()) {
      return MemoryError(field + ".completed", absl::StrCat("[0, ", lease.tickets_size(), ")"),
                         lease.completed());
    }
    for (int64_t i = lease.completed(); i < lease.tickets_size(); ++i) {
      RETURN_IF_ERROR(CheckMemoryTicket(field, memory, lease.tickets(static_cast<int>(i)),
                                        /*may_be_empty=*/false));
    }
  }
  return absl::OkStatus();
}

void FillTicket(const WorkTicket& ticket, v1::ChiefMemory::Ticket* out) {
  out->set_step(ticket.step);
  out->set_epoch(ticket.epoch);
  out->set_begin(ticket.begin);
  out->set_end(ticket.end);
}

void AddRanges(const RecordSet& records, v1::JobState* state) {
  for (const RecordRange& range : records.ranges()) {
    v1::JobState::Range* const out = state->add_unfinished();
    out->set_epoch(range.epoch);
    out->set_begin(range.begin);
    out->set_end(range.end);
  }
}

}  // namespace

absl::StatusOr<WorkLedger> WorkLedger::FromState(const v1::JobState& state, WorkOptions options) {
  RETURN_IF_ERROR(CheckState(state));
  WorkLedger ledger(options);
  ledger.TakeOrigin(state);
  ledger.next_step_ = state.global_step();
  ledger.AdoptCursor(state);
  if (state.num_records() != options.num_records) return ledger;
  for (const v1::JobState::Range& range : state.unfinished()) {
    ledger.AddReturned({range.epoch(), range.begin(), range.end()});
  }
  return ledger;
}

void WorkLedger::TakeOrigin(const v1::JobState& state) {
  origin_ = state;
  origin_.clear_unfinished();
  version_ = state.book_version() + kVersionsPerChief;
  if (state.job_id() != 0) options_.job_id = state.job_id();
  completed_steps_ = state.global_step();
}

void WorkLedger::AdoptCursor(const v1::JobState& state) {
  next_epoch_ = state.next_epoch();
  next_position_ = state.next_position();
  if (state.num_records() != options_.num_records && next_position_ > 0) {
    ++next_epoch_;
    next_position_ = 0;
  }
}

bool WorkLedger::AddReturned(const RecordRange& records) {
  bool added = true;
  for (int64_t begin = records.begin; begin < records.end && added;) {
    const int64_t end = begin + std::min(options_.batch_size, records.end - begin);
    added = returned_.Add({records.epoch, begin, end});
    begin = end;
  }
  return added;
}

absl::StatusOr<WorkLedger> WorkLedger::FromMemory(const v1::ChiefMemory& memory,
                                                  WorkOptions options) {
  const v1::JobState& job = memory.job();
  RETURN_IF_ERROR(CheckMemoryOptions(job, options));
  RETURN_IF_ERROR(CheckMemoryTickets(memory));
  ASSIGN_OR_RETURN(WorkLedger ledger, FromState(job, options));
  ledger.next_step_ = memory.next_step();
  RETURN_IF_ERROR(ledger.AdoptReturned(memory));
  RETURN_IF_ERROR(ledger.AdoptLeases(memory));
  int64_t undone = static_cast<int64_t>(ledger.free_steps_.size());
  for (const auto& [id, lease] : ledger.leases_) {
    undone += static_cast<int64_t>(lease.unfinished().size());
  }
  if (memory.next_step() != job.global_step() + undone) {
    return MemoryError("next_step",
                       absl::StrCat("global_step ", job.global_step(), " + unfinished ", undone),
                       memory.next_step());
  }
  return ledger;
}

absl::Status WorkLedger::AdoptReturned(const v1::ChiefMemory& memory) {
  for (int i = 0; i < memory.returned_size(); ++i) {
    const v1::ChiefMemory::Ticket& ticket = memory.returned(i);
    if (!AddReturned({ticket.epoch(), ticket.begin(), ticket.end()})) {
      return MemoryError(absl::StrCat("returned[", i, "].begin"), "records of no other ticket",
                         ticket.begin());
    }
    if (!free_steps_.insert(ticket.step()).second) {
      return MemoryError(absl::StrCat("returned[", i, "].step"), "a step of no other ticket",
                         ticket.step());
    }
  }
  return absl::OkStatus();
}

absl::Status WorkLedger::AdoptLeases(const v1::ChiefMemory& memory) {
  std::set<int64_t> steps = free_steps_;
  RecordSet records = returned_;
  for (const v1::ChiefMemory::Lease& entry : memory.leases()) {
    Lease lease = {entry.worker(), entry.completed(), {}, Lease::kInherited};
    for (const v1::ChiefMemory::Ticket& ticket : entry.tickets()) {
      lease.tickets.push_back({ticket.step(), ticket.epoch(), ticket.begin(), ticket.end()});
    }
    for (const WorkTicket& ticket : lease.unfinished()) {
      if (steps.insert(ticket.step).second && records.Add(ticket.records())) continue;
      return MemoryError(absl::StrCat("leases[", entry.lease_id(), "]"),
                         "steps and records of no other ticket, those of step", ticket.step);
    }
    leases_[entry.lease_id()] = std::move(lease);
  }
  return absl::OkStatus();
}

v1::JobState WorkLedger::ToState() const {
  v1::JobState state;
  state.set_global_step(completed_steps_);
  state.set_next_epoch(next_epoch_);
  state.set_next_position(next_position_);
  AddRanges(Unfinished(), &state);
  state.set_batch_size(options_.batch_size);
  state.set_num_records(options_.num_records);
  state.set_job_id(options_.job_id);
  state.set_book_version(version_);
  return state;
}

void WorkLedger::ToMemory(v1::ChiefMemory* memory) const {
  RecordSet returned = returned_;
  for (const RecordRange& records : round_) returned.Add(records);
  for (const int64_t step : free_steps_) {
    const RecordRange records = returned.empty() ? RecordRange() : returned.TakeFirst();
    FillTicket({step, records.epoch, records.begin, records.end}, memory->add_returned());
  }
  *memory->mutable_job() = ToState();
  memory->mutable_job()->clear_unfinished();
  AddRanges(returned, memory->mutable_job());
  memory->set_next_step(next_step_);
  for (const auto& [id, lease] : leases_) {
    v1::ChiefMemory::Lease* const entry = memory->add_leases();
    entry->set_lease_id(id);
    entry->set_worker(lease.worker);
    entry->set_completed(lease.completed);
    for (const WorkTicket& ticket : lease.tickets) FillTicket(ticket, entry->add_tickets());
  }
}

}  // namespace keelson
