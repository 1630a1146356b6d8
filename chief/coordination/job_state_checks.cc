#include "chief/coordination/job_state_checks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

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

// Positions are valid only for the same number of records and the same batch size.
absl::Status CheckPersistedOptions(const v1::JobState& job, const WorkOptions& options) {
  if (job.num_records() != options.num_records) {
    return PersistedStateError("job.num_records", absl::StrCat(options.num_records),
                               job.num_records());
  }
  if (job.batch_size() != options.batch_size) {
    return PersistedStateError("job.batch_size", absl::StrCat(options.batch_size),
                               job.batch_size());
  }
  return absl::OkStatus();
}

// Checks that a ticket lies before the cursor, within its epoch, and has records unless
// `may_be_empty`.
absl::Status CheckPersistedTicket(const std::string& field, const v1::PersistedJobState& persisted,
                                  const v1::PersistedJobState::Ticket& ticket, bool may_be_empty) {
  const v1::JobState& job = persisted.job();
  if (ticket.step() < 0 || ticket.step() >= persisted.next_step()) {
    return PersistedStateError(field + ".step", absl::StrCat("[0, ", persisted.next_step(), ")"),
                               ticket.step());
  }
  if (ticket.epoch() < 0 || ticket.epoch() > job.next_epoch()) {
    return PersistedStateError(field + ".epoch", absl::StrCat("[0, ", job.next_epoch(), "]"),
                               ticket.epoch());
  }
  const int64_t limit =
      ticket.epoch() == job.next_epoch() ? job.next_position() : job.num_records();
  if (ticket.begin() < 0 || ticket.end() > limit) {
    return PersistedStateError(field + ".end", absl::StrCat("<= ", limit), ticket.end());
  }
  if (ticket.end() - ticket.begin() < (may_be_empty ? 0 : 1)) {
    return PersistedStateError(field + ".begin", absl::StrCat("< ", ticket.end()), ticket.begin());
  }
  return absl::OkStatus();
}

absl::Status CheckPersistedTickets(const v1::PersistedJobState& persisted) {
  for (int i = 0; i < persisted.returned_size(); ++i) {
    RETURN_IF_ERROR(CheckPersistedTicket(absl::StrCat("returned[", i, "]"), persisted,
                                         persisted.returned(i),
                                         /*may_be_empty=*/true));
  }
  for (const v1::PersistedJobState::Lease& lease : persisted.leases()) {
    const std::string field = absl::StrCat("leases[", lease.lease_id(), "]");
    if (lease.completed() < 0 || lease.completed() >= lease.tickets_size()) {
      return PersistedStateError(
          field + ".completed", absl::StrCat("[0, ", lease.tickets_size(), ")"), lease.completed());
    }
    for (int64_t i = lease.completed(); i < lease.tickets_size(); ++i) {
      RETURN_IF_ERROR(CheckPersistedTicket(field, persisted, lease.tickets(static_cast<int>(i)),
                                           /*may_be_empty=*/false));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckJobState(const v1::JobState& state) {
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

absl::Status PersistedStateError(absl::string_view field, absl::string_view expected,
                                 int64_t found) {
  return absl::DataLossError(
      absl::StrCat("persisted job state: ", field, ": expected ", expected, ", found ", found));
}

absl::Status CheckPersistedState(const v1::PersistedJobState& persisted,
                                 const WorkOptions& options) {
  RETURN_IF_ERROR(CheckPersistedOptions(persisted.job(), options));
  return CheckPersistedTickets(persisted);
}

}  // namespace keelson
