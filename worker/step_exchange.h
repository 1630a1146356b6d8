// How one step's gradients get from the model to the servers: a class for each kind of ticket.
#ifndef KEELSON_WORKER_STEP_EXCHANGE_H_
#define KEELSON_WORKER_STEP_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/client/services/parameter_client.h"
#include "core/data/ticket.h"
#include "core/model/model.h"
#include "worker/chief_session.h"
#include "worker/gradient_histograms.h"
#include "worker/model_values.h"
#include "worker/table_exchange.h"

namespace keelson {

// The exchange of one ticket. Used by one thread: Compute, Offer, LoadAnswer, NoteEnded. Errors are
// those of the session, the client and the model.
class StepExchange {
 public:
  // All outlive the exchange.
  struct Parts {
    ChiefSession* session = nullptr;
    ParameterClient* client = nullptr;
    Model* model = nullptr;
    GradientHistograms* histograms = nullptr;  // null: none
    ModelValues* values = nullptr;
    TableExchange* tables = nullptr;  // null: the model has none
  };

  static std::unique_ptr<StepExchange> Make(const Ticket& ticket, const Parts& parts);
  virtual ~StepExchange() = default;

  // The step before may be under way while this one is computed.
  virtual bool overlaps() const = 0;
  // Where a step has several tickets, this number tells them apart.
  virtual uint64_t part() const = 0;

  // Computes the gradients, which are offered to the client as they become complete, unless Offer
  // must ask first. No gradients in the result: the loss is not finite, and nothing is sent.
  virtual absl::StatusOr<StepResult> Compute(const Batch& batch, const StepOptions& options);
  // After this all gradients are offered. False: the chief no longer wants them, and none was sent.
  virtual absl::StatusOr<bool> Offer();
  // Loads the values that come with the servers' answer, as they arrive.
  virtual absl::Status LoadAnswer() = 0;
  // The client has ended the step, at `time` on the monotonic clock.
  virtual void NoteEnded(absl::Duration time) = 0;

 protected:
  StepExchange(const Ticket& ticket, const Parts& parts) : ticket_(ticket), parts_(parts) {}

  const Ticket& ticket() const { return ticket_; }
  const Parts& parts() const { return parts_; }
  virtual std::optional<Aggregation> aggregation() const = 0;

  // The gradients that the model has computed and not delivered.
  absl::Status DeliverGradients();
  // Begins the step at the client, once.
  void Begin();

 private:
  GradientTarget Target();
  // The variable's gradient is complete, or one of a table's rows.
  void OfferVariable(size_t variable);
  void OfferRows();

  const Ticket ticket_;
  const Parts parts_;
  bool begun_ = false;
  // The first error of OfferRows.
  absl::Status rows_status_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_STEP_EXCHANGE_H_
