// Writes and reads the two forms in which the ledger outlives a chief: JobState and
// PersistedJobState.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/coordination/job_state_checks.h"
#include "chief/coordination/work_ledger.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// More changes than a chief makes between two stores of its state.
constexpr uint64_t kVersionsPerChief = uint64_t{1} << 32;

void FillTicket(const WorkTicket& ticket, v1::PersistedJobState::Ticket* out) {
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
  RETURN_IF_ERROR(CheckJobState(state));
  WorkLedger ledger(options);
  ledger.TakeOrigin(state);
  ledger.pool_.ContinueFrom(state);
  if (options.stream) {
    RETURN_IF_ERROR(ledger.stream_files_.Restore(state));
    ledger.pool_.SetKnown(ledger.stream_files_.known());
  }
  return ledger;
}

void WorkLedger::TakeOrigin(const v1::JobState& state) {
  origin_ = state;
  origin_.clear_unfinished();
  version_ = state.state_version() + kVersionsPerChief;
  if (state.job_id() != 0) options_.job_id = state.job_id();
  completed_steps_ = state.global_step();
}

absl::StatusOr<WorkLedger> WorkLedger::FromPersisted(const v1::PersistedJobState& persisted,
                                                     WorkOptions options) {
  const v1::JobState& job = persisted.job();
  RETURN_IF_ERROR(CheckPersistedState(persisted, options));
  ASSIGN_OR_RETURN(WorkLedger ledger, FromState(job, options));
  ledger.pool_.SetNextStep(persisted.next_step());
  RETURN_IF_ERROR(ledger.AdoptReturned(persisted));
  RETURN_IF_ERROR(ledger.AdoptLeases(persisted));
  int64_t undone = static_cast<int64_t>(ledger.pool_.free_steps().size());
  ledger.leases_.ForEachUnfinished([&](const WorkTicket&) { ++undone; });
  if (persisted.next_step() != job.global_step() + undone) {
    return PersistedStateError(
        "next_step", absl::StrCat("global_step ", job.global_step(), " + unfinished ", undone),
        persisted.next_step());
  }
  return ledger;
}

absl::Status WorkLedger::AdoptReturned(const v1::PersistedJobState& persisted) {
  for (int i = 0; i < persisted.returned_size(); ++i) {
    const v1::PersistedJobState::Ticket& ticket = persisted.returned(i);
    if (!pool_.AddRecords({ticket.epoch(), ticket.begin(), ticket.end()})) {
      return PersistedStateError(absl::StrCat("returned[", i, "].begin"),
                                 "records of no other ticket", ticket.begin());
    }
    if (!pool_.AddStep(ticket.step())) {
      return PersistedStateError(absl::StrCat("returned[", i, "].step"),
                                 "a step of no other ticket", ticket.step());
    }
  }
  return absl::OkStatus();
}

absl::Status WorkLedger::AdoptLeases(const v1::PersistedJobState& persisted) {
  std::set<int64_t> steps = pool_.free_steps();
  RecordSet records = pool_.returned();
  for (const v1::PersistedJobState::Lease& entry : persisted.leases()) {
    LeaseBook::Lease lease = {entry.worker(), entry.completed(), {}, LeaseBook::Lease::kInherited};
    for (const v1::PersistedJobState::Ticket& ticket : entry.tickets()) {
      lease.tickets.push_back({ticket.step(), ticket.epoch(), ticket.begin(), ticket.end()});
    }
    for (const WorkTicket& ticket : lease.unfinished()) {
      if (steps.insert(ticket.step).second && records.Add(ticket.records())) continue;
      return PersistedStateError(absl::StrCat("leases[", entry.lease_id(), "]"),
                                 "steps and records of no other ticket, those of step",
                                 ticket.step);
    }
    leases_.Add(entry.lease_id(), std::move(lease));
  }
  return absl::OkStatus();
}

v1::JobState WorkLedger::ToState() const {
  v1::JobState state;
  state.set_global_step(completed_steps_);
  state.set_next_epoch(pool_.next_epoch());
  state.set_next_position(pool_.next_position());
  AddRanges(Unfinished(), &state);
  state.set_batch_size(options_.batch_size);
  state.set_num_records(options_.num_records);
  state.set_job_id(options_.job_id);
  state.set_state_version(version_);
  if (options_.stream) {
    for (v1::StreamFile& file : stream_files_.From(FirstUndoneRecord())) {
      *state.add_stream_files() = std::move(file);
    }
  }
  return state;
}

void WorkLedger::ToPersisted(v1::PersistedJobState* persisted) const {
  RecordSet returned = pool_.returned();
  for (const RecordRange& records : round_) returned.Add(records);
  for (const int64_t step : pool_.free_steps()) {
    const RecordRange records = returned.empty() ? RecordRange() : returned.TakeFirst();
    FillTicket({step, records.epoch, records.begin, records.end}, persisted->add_returned());
  }
  *persisted->mutable_job() = ToState();
  persisted->mutable_job()->clear_unfinished();
  AddRanges(returned, persisted->mutable_job());
  persisted->set_next_step(pool_.next_step());
  for (const auto& [id, lease] : leases_.leases()) {
    v1::PersistedJobState::Lease* const entry = persisted->add_leases();
    entry->set_lease_id(id);
    entry->set_worker(lease.worker);
    entry->set_completed(lease.completed);
    for (const WorkTicket& ticket : lease.tickets) FillTicket(ticket, entry->add_tickets());
  }
}

}  // namespace keelson
