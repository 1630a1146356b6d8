#include "worker/model_values.h"

#include <optional>

#include "core/base/status_macros.h"
#include "worker/device_status.h"

namespace keelson {
namespace {

// Values are fetched again at this age: other workers push while this one waits for work.
constexpr absl::Duration kValuesAreOld = absl::Seconds(1);

}  // namespace

bool ModelValues::MustPull(const Ticket& ticket) const {
  const bool wants_fresh = ticket.fresh_values && ticket.lease_id != fresh_lease_;
  return wants_fresh || ahead_ || clock_->Monotonic() - arrived_ > kValuesAreOld;
}

absl::Status ModelValues::Pull(const Ticket& ticket, ParameterClient::StillWanted wanted) {
  ahead_ = false;
  RETURN_IF_ERROR(client_->PullFor(ticket.follows_round ? ticket.step : 0, std::move(wanted)));
  Invalidate();
  NoteArrived(clock_->Monotonic());
  if (ticket.fresh_values) fresh_lease_ = ticket.lease_id;
  return absl::OkStatus();
}

void ModelValues::PullAhead(const Ticket& ticket) {
  if (!ticket.last_of_step || client_->table_rows() != nullptr) return;
  client_->PullAhead(ticket.step + 1);
  ahead_ = true;
}

absl::Status ModelValues::Load() {
  for (size_t v = 0; v < loaded_.size(); ++v) {
    if (!loaded_[v]) RETURN_IF_ERROR(LoadVariable(v));
  }
  return absl::OkStatus();
}

absl::Status ModelValues::LoadArriving() {
  Invalidate();
  if (!uses_wire_memory_) return absl::OkStatus();
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<size_t> variable, client_->NextValues());
    if (!variable.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(LoadVariable(*variable));
  }
}

absl::Status ModelValues::LoadVariable(size_t variable) {
  loaded_[variable] = true;
  return DeviceStatus(uses_wire_memory_
                          ? model_->LoadWire(variable, client_->value_set())
                          : model_->SetVariable(variable, client_->values()[variable]));
}

}  // namespace keelson
