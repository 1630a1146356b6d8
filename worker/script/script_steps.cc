#include "worker/script/script_steps.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// Values are fetched again at this age: other workers push while this one waits for work.
constexpr absl::Duration kValuesAreOld = absl::Seconds(1);

// Of a ticket whose gradients the servers add up.
std::optional<Aggregation> AggregationOf(const Ticket& ticket) {
  if (ticket.attempt == 0) return std::nullopt;
  return Aggregation{ticket.step, ticket.attempt, static_cast<float>(ticket.end - ticket.begin),
                     ticket.order};
}

absl::Status Offered(absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("the script's message: expected STEP of a ticket whose gradients were offered, "
                   "found ",
                   message));
}

}  // namespace

absl::StatusOr<bool> ScriptSteps::Begin(const Ticket& ticket) {
  if (offered_) return Offered("BEGIN");
  if (!progress_->IsValid(ticket)) return false;
  const absl::Duration now = clock_->Monotonic();
  const bool wants_fresh = ticket.fresh_values && ticket.lease_id != fresh_lease_;
  if (wants_fresh || rows_->has_ahead() || now - arrived_ > kValuesAreOld) {
    RETURN_IF_ERROR(Pull(ticket));
  }
  values_->Publish();
  pull_ = clock_->Monotonic() - now;
  return true;
}

absl::Status ScriptSteps::Pull(const Ticket& ticket) {
  TableRows* const rows = client_->table_rows();
  if (rows != nullptr) RETURN_IF_ERROR(rows_->WantAhead(rows));
  RETURN_IF_ERROR(client_->PullFor(ticket.follows_round ? ticket.step : 0,
                                   [this, ticket] { return progress_->IsValid(ticket); }));
  if (rows != nullptr) rows_->DeliverAhead(rows);
  arrived_ = clock_->Monotonic();
  if (ticket.fresh_values) fresh_lease_ = ticket.lease_id;
  return absl::OkStatus();
}

absl::Status ScriptSteps::FetchRows(const RowRequest& request) {
  TableRows* const rows = client_->table_rows();
  if (rows == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(rows->Want(request.ids));
  RETURN_IF_ERROR(client_->Pull());
  rows_->Deliver(request, rows);
  return absl::OkStatus();
}

absl::Status ScriptSteps::CheckOffer() const {
  if (client_->table_rows() != nullptr) {
    return absl::InvalidArgumentError(
        "OFFER: expected a model without tables, found one with them");
  }
  if (values_->holds()) return absl::OkStatus();
  return absl::InvalidArgumentError("OFFER: expected --hold_values of the agent, found none");
}

absl::Status ScriptSteps::CheckVariables(absl::string_view message,
                                         absl::Span<const uint64_t> variables) const {
  const size_t count = client_->gradients().size();
  for (const uint64_t variable : variables) {
    if (variable < count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(message, ": expected a variable below ", count, ", found ", variable));
  }
  return absl::OkStatus();
}

absl::Status ScriptSteps::Offer(const Ticket& ticket, absl::Span<const uint64_t> variables) {
  RETURN_IF_ERROR(CheckOffer());
  RETURN_IF_ERROR(CheckVariables("OFFER", variables));
  if (!progress_->IsValid(ticket)) return absl::OkStatus();
  if (!offered_) {
    ASSIGN_OR_RETURN(offered_, BeginExchange(ticket));
    if (!offered_) return absl::OkStatus();
  }
  for (const uint64_t variable : variables) client_->Offer(variable);
  return absl::OkStatus();
}

absl::StatusOr<bool> ScriptSteps::BeginExchange(const Ticket& ticket) {
  if (ticket.contested) {
    ASSIGN_OR_RETURN(const bool admitted, session_->Admit(ticket));
    if (!admitted) {
      progress_->Drop(ticket);
      return false;
    }
  }
  // The script computed from values of the membership before.
  if (arrived_ == -absl::InfiniteDuration()) RETURN_IF_ERROR(Pull(ticket));
  client_->Begin(ticket.step, AggregationOf(ticket));
  return true;
}

absl::StatusOr<PushResult> ScriptSteps::EndExchange(const Ticket& ticket, const ScriptStep& step) {
  const bool aggregated = AggregationOf(ticket).has_value();
  RETURN_IF_ERROR(OfferRows(step, aggregated));
  if (!aggregated) {
    for (const uint64_t variable : step.absent) client_->Omit(variable);
  }
  while (values_->holds() && !aggregated) {
    ASSIGN_OR_RETURN(const std::optional<size_t> variable, client_->NextValues());
    if (!variable.has_value()) break;
    values_->Publish(*variable);
  }
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client_->End());
  if (aggregated) return *pushed;
  arrived_ = clock_->Monotonic();
  if (client_->table_rows() != nullptr) rows_->DeliverAhead(client_->table_rows());
  return *pushed;
}

absl::Status ScriptSteps::Clear(absl::Span<const uint64_t> absent) {
  RETURN_IF_ERROR(CheckVariables("STEP", absent));
  for (const uint64_t variable : absent) absl::c_fill(client_->gradients()[variable], 0.0f);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PushResult>> ScriptSteps::Step(const Ticket& ticket,
                                                            const ScriptStep& step) {
  const bool is_valid = progress_->IsValid(ticket);
  const bool counts = is_valid && std::isfinite(step.loss.value_or(0));
  if (is_valid && !counts) progress_->AddNonFiniteLoss();
  const absl::Duration start = clock_->Monotonic();
  if (!std::exchange(offered_, false)) {
    if (!counts) return std::nullopt;
    ASSIGN_OR_RETURN(const bool begun, BeginExchange(ticket));
    if (!begun) return std::nullopt;
  }
  // What was begun is ended, even if it does not count any more.
  ASSIGN_OR_RETURN(const PushResult pushed, EndExchange(ticket, step));
  if (!counts) return std::nullopt;
  if (pushed.refused) {
    progress_->Refuse(ticket);
    return std::nullopt;
  }
  Finish(ticket, step, pushed, clock_->Monotonic() - start);
  return pushed;
}

absl::Status ScriptSteps::OfferRows(const ScriptStep& step, bool aggregated) {
  TableRows* const rows = client_->table_rows();
  if (rows == nullptr) return absl::OkStatus();
  if (!aggregated) RETURN_IF_ERROR(rows_->WantAhead(rows));
  return rows_->Offer(step.spaces, rows);
}

absl::StatusOr<bool> ScriptSteps::Skip(const Ticket& ticket, double loss) {
  if (offered_) return Offered("SKIP");
  ScriptStep step;
  if (std::isfinite(loss)) step.loss = loss;
  if (ticket.attempt == 0) {
    if (!progress_->IsValid(ticket)) return false;
    Finish(ticket, step, {}, {});
    return true;
  }
  for (const absl::Span<float> gradient : client_->gradients()) absl::c_fill(gradient, 0.0f);
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, Step(ticket, step));
  return pushed.has_value();
}

void ScriptSteps::Finish(const Ticket& ticket, const ScriptStep& step, const PushResult& pushed,
                         absl::Duration push) {
  FinishedStep finished;
  finished.ticket = ticket;
  finished.loss = step.loss;
  finished.staleness = pushed.staleness;
  finished.pull = std::exchange(pull_, absl::ZeroDuration());
  finished.input = step.input;
  finished.compute = step.compute;
  finished.push = push;
  finished.figures.set_push_retries(pushed.retries);
  finished.figures.set_bytes_pushed(pushed.bytes_pushed);
  finished.figures.set_bytes_pulled(pushed.bytes_pulled);
  finished.figures.set_credit_wait_seconds(absl::ToDoubleSeconds(pushed.waited_for_credit));
  ++finished_steps_;
  progress_->Finish(finished);
}

}  // namespace keelson
