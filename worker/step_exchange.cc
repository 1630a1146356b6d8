#include "worker/step_exchange.h"

#include "core/base/status_macros.h"
#include "worker/device_status.h"

namespace keelson {
namespace {

// A step of the asynchronous mode or of bounded staleness: the servers apply it when it arrives and
// answer with new values.
class IndependentStep : public StepExchange {
 public:
  IndependentStep(const Ticket& ticket, const Parts& parts) : StepExchange(ticket, parts) {}

  bool overlaps() const override { return true; }
  uint64_t part() const override { return 0; }
  absl::Status LoadAnswer() override { return parts().values->LoadArriving(); }
  void NoteEnded(absl::Duration time) override { parts().values->NoteArrived(time); }

 protected:
  std::optional<Aggregation> aggregation() const override { return std::nullopt; }
};

// A ticket of a round: the servers add its gradients up, and their answer has no values.
class RoundStep : public StepExchange {
 public:
  RoundStep(const Ticket& ticket, const Parts& parts) : StepExchange(ticket, parts) {}

  bool overlaps() const override { return false; }
  uint64_t part() const override { return static_cast<uint64_t>(ticket().begin); }
  absl::Status LoadAnswer() override { return absl::OkStatus(); }
  void NoteEnded(absl::Duration) override { parts().values->PullAhead(ticket()); }

 protected:
  std::optional<Aggregation> aggregation() const override {
    return Aggregation{ticket().step, ticket().attempt,
                       static_cast<float>(ticket().end - ticket().begin), ticket().order};
  }
};

// A ticket of a round that has more tickets than it needs: its gradients are sent when the chief
// has said that they count.
class ContestedStep : public RoundStep {
 public:
  using RoundStep::RoundStep;

  absl::StatusOr<StepResult> Compute(const Batch& batch, const StepOptions& options) override {
    StepOptions undelivered = options;
    undelivered.deliver = false;
    return StepExchange::Compute(batch, undelivered);
  }
  absl::StatusOr<bool> Offer() override {
    ASSIGN_OR_RETURN(const bool admitted, parts().session->Admit(ticket()));
    if (!admitted) return false;
    Begin();
    RETURN_IF_ERROR(DeliverGradients());
    return true;
  }
};

}  // namespace

std::unique_ptr<StepExchange> StepExchange::Make(const Ticket& ticket, const Parts& parts) {
  if (ticket.contested) return std::make_unique<ContestedStep>(ticket, parts);
  if (ticket.attempt != 0) return std::make_unique<RoundStep>(ticket, parts);
  return std::make_unique<IndependentStep>(ticket, parts);
}

absl::StatusOr<StepResult> StepExchange::Compute(const Batch& batch, const StepOptions& options) {
  absl::StatusOr<StepResult> result = parts_.model->ComputeGradients(
      batch, options, Target(), [this](size_t variable) { OfferVariable(variable); });
  if (!result.ok()) return DeviceStatus(result.status());
  RETURN_IF_ERROR(rows_status_);
  return result;
}

absl::StatusOr<bool> StepExchange::Offer() {
  Begin();
  return true;
}

absl::Status StepExchange::DeliverGradients() {
  RETURN_IF_ERROR(DeviceStatus(parts_.model->DeliverGradients(
      Target(), [this](size_t variable) { OfferVariable(variable); })));
  return rows_status_;
}

void StepExchange::Begin() {
  if (!begun_) parts_.client->Begin(ticket_.step, aggregation());
  begun_ = true;
}

GradientTarget StepExchange::Target() {
  GradientTarget target;
  target.arrays = parts_.client->gradients();
  target.wire_set = parts_.client->gradient_set();
  if (parts_.tables == nullptr) return target;
  target.rows = parts_.tables->gradients();
  target.on_rows_ready = [this](size_t) { OfferRows(); };
  return target;
}

void StepExchange::OfferRows() {
  Begin();
  // Where the servers answer with values, they answer with rows too.
  rows_status_.Update(parts_.tables->NoteReady(/*ahead=*/!aggregation().has_value()));
}

void StepExchange::OfferVariable(size_t variable) {
  Begin();
  GradientHistograms* const histograms = parts_.histograms;
  if (histograms != nullptr && histograms->wanted()) {
    if (parts_.values->uses_wire_memory()) {
      histograms->AddEncoded(variable, parts_.client->gradient_set());
    } else {
      histograms->Add(variable, parts_.client->gradients()[variable]);
    }
  }
  parts_.client->Offer(variable);
}

}  // namespace keelson
