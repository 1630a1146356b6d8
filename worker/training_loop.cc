// A step is one round trip: values come with the answer to a push, so the loop pulls only when they
// are old (kValuesAreOld) or the ticket wants fresh ones. At depth 2 the next step computes while
// the last one is at the servers; whatever needs all of them acknowledged (a pull, a synchronous
// step, waiting for work, the end) drains first. A step counts only when the servers have
// acknowledged it, so that a ticket is reported as done after its gradient, never before.
#include "worker/training_loop.h"

#include <utility>

#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "worker/device_status.h"

namespace keelson {
namespace {

// Values are fetched again at this age: other workers push while this one waits for work.
constexpr absl::Duration kValuesAreOld = absl::Seconds(1);

bool IsSynchronous(const Ticket& ticket) { return ticket.attempt != 0; }

std::optional<Aggregation> AggregationOf(const Ticket& ticket) {
  if (!IsSynchronous(ticket)) return std::nullopt;
  return Aggregation{ticket.step, ticket.attempt, static_cast<float>(ticket.end - ticket.begin)};
}

// The seed is the same for every worker that takes the ticket. In synchronous mode the tickets of a
// step drop different units.
uint64_t DropoutSeed(uint64_t seed, const Ticket& ticket) {
  const uint64_t part = IsSynchronous(ticket) ? static_cast<uint64_t>(ticket.begin) : 0;
  const auto bits = Philox(seed, StableHash("dropout") + part, static_cast<uint64_t>(ticket.step));
  return (static_cast<uint64_t>(bits[0]) << 32) | bits[1];
}

}  // namespace

absl::Status TrainingLoop::Run(Batcher* batcher) {
  const absl::Status status = TrainOnBatches(batcher);
  const absl::Status drained = Drain();
  return status.ok() ? drained : status;
}

absl::Status TrainingLoop::TrainOnBatches(Batcher* batcher) {
  while (true) {
    // The chief may be waiting for the step under way before it grants more work.
    if (!batcher->Ready()) RETURN_IF_ERROR(Drain());
    const absl::Duration start = clock_->Monotonic();
    ASSIGN_OR_RETURN(std::optional<PreparedBatch> prepared, batcher->Next());
    if (!prepared.has_value()) return absl::OkStatus();
    if (session_->ended()->raised()) return absl::CancelledError("by a signal");
    if (progress_->IsValid(prepared->ticket)) {
      FinishedStep step;
      step.ticket = prepared->ticket;
      step.input = clock_->Monotonic() - start;
      RETURN_IF_ERROR(TrainStep(*prepared, step));
    }
    batcher->Recycle(std::move(prepared->batch));
  }
}

absl::Status TrainingLoop::TrainStep(const PreparedBatch& prepared, FinishedStep step) {
  const Ticket& ticket = prepared.ticket;
  const absl::Duration start = clock_->Monotonic();
  if (IsSynchronous(ticket)) RETURN_IF_ERROR(Drain());
  RETURN_IF_ERROR(PrepareValues(ticket));
  const absl::Duration loaded = clock_->Monotonic();
  if (histograms_ != nullptr) histograms_->BeginStep();
  ASSIGN_OR_RETURN(const bool computed, ComputeAndOffer(prepared, &step));
  if (!computed) {
    progress_->AddNonFiniteLoss();
    return absl::OkStatus();
  }
  const absl::Duration offered = clock_->Monotonic();
  step.pull = loaded - start;
  step.compute = offered - loaded;
  if (ticket.contested) {
    ASSIGN_OR_RETURN(const bool admitted, OfferContested(ticket));
    if (!admitted) {
      progress_->Drop(ticket);
      return absl::OkStatus();
    }
  }
  if (histograms_ != nullptr) histograms_->EndStep(ticket.step + 1);
  under_way_.push_back(step);
  // The step counts once the servers have it, even if the device fails here.
  const absl::Status loading = IsSynchronous(ticket) ? absl::OkStatus() : LoadArriving();
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client_->End());
  const absl::Duration ended = clock_->Monotonic();
  under_way_.back().push = ended - offered;
  if (!IsSynchronous(ticket)) values_from_ = ended;
  Acknowledge(pushed);
  return loading;
}

absl::Status TrainingLoop::PrepareValues(const Ticket& ticket) {
  const bool wants_fresh = ticket.fresh_values && ticket.lease_id != fresh_lease_;
  if (wants_fresh || clock_->Monotonic() - values_from_ > kValuesAreOld) {
    RETURN_IF_ERROR(Drain());
    RETURN_IF_ERROR(client_->Pull());
    ValuesChange();
    values_from_ = clock_->Monotonic();
    if (ticket.fresh_values) fresh_lease_ = ticket.lease_id;
  }
  return LoadValues();
}

absl::Status TrainingLoop::LoadValues() {
  for (size_t v = 0; v < loaded_.size(); ++v) {
    if (!loaded_[v]) RETURN_IF_ERROR(Load(static_cast<int>(v)));
  }
  return absl::OkStatus();
}

absl::Status TrainingLoop::LoadArriving() {
  ValuesChange();
  if (!uses_wire_memory_) return absl::OkStatus();
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<int> variable, client_->NextValues());
    if (!variable.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(Load(*variable));
  }
}

absl::Status TrainingLoop::Load(int variable) {
  const auto v = static_cast<size_t>(variable);
  loaded_[v] = true;
  return DeviceStatus(uses_wire_memory_ ? model_->LoadWire(variable, client_->value_set())
                                        : model_->SetVariable(variable, client_->values()[v]));
}

absl::StatusOr<bool> TrainingLoop::ComputeAndOffer(const PreparedBatch& prepared,
                                                   FinishedStep* step) {
  const Ticket& ticket = prepared.ticket;
  bool begun = false;
  const auto begin = [&] {
    if (!begun) client_->Begin(ticket.step, AggregationOf(ticket));
    begun = true;
  };
  const auto offer = [&](int variable) {
    begin();
    Offer(variable);
  };
  StepOptions options;
  options.dropout_seed = DropoutSeed(options_.seed, ticket);
  options.clip_global_norm = options_.clip_global_norm;
  options.deliver = !ticket.contested;
  const absl::StatusOr<StepResult> result =
      model_->ComputeGradients(prepared.batch, options, Target(), offer);
  if (!result.ok()) return DeviceStatus(result.status());
  if (!result->has_gradients) return false;
  step->loss = result->loss;
  if (!ticket.contested) begin();
  return true;
}

absl::StatusOr<bool> TrainingLoop::OfferContested(const Ticket& ticket) {
  ASSIGN_OR_RETURN(const bool admitted, session_->Admit(ticket));
  if (!admitted) return false;
  client_->Begin(ticket.step, AggregationOf(ticket));
  RETURN_IF_ERROR(
      DeviceStatus(model_->DeliverGradients(Target(), [this](int variable) { Offer(variable); })));
  return true;
}

void TrainingLoop::Offer(int variable) {
  if (histograms_ != nullptr && histograms_->wanted()) {
    if (uses_wire_memory_) {
      histograms_->AddEncoded(variable, client_->gradient_set());
    } else {
      histograms_->Add(variable, client_->gradients()[static_cast<size_t>(variable)]);
    }
  }
  client_->Offer(variable);
}

absl::Status TrainingLoop::Drain() {
  if (under_way_.empty()) return absl::OkStatus();
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client_->Drain());
  ValuesChange();
  under_way_.back().push += clock_->Monotonic() - start;
  Acknowledge(pushed);
  return absl::OkStatus();
}

void TrainingLoop::Acknowledge(const std::optional<PushResult>& pushed) {
  if (!pushed.has_value()) return;
  FinishedStep step = under_way_.front();
  under_way_.pop_front();
  // The servers have moved on to another attempt at the step, for which the chief hands out its
  // records again.
  if (pushed->refused) return progress_->Drop(step.ticket);
  ++finished_steps_;
  step.staleness = pushed->staleness;
  step.push_retries = pushed->retries;
  step.bytes_pushed = pushed->bytes_pushed;
  step.bytes_pulled = pushed->bytes_pulled;
  step.waited_for_credit = pushed->waited_for_credit;
  progress_->Finish(step);
}

}  // namespace keelson
