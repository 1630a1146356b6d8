// The variables' values that a worker's model computes with.
#ifndef KEELSON_WORKER_MODEL_VALUES_H_
#define KEELSON_WORKER_MODEL_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/client/services/parameter_client.h"
#include "core/data/ticket.h"
#include "core/model/model.h"

namespace keelson {

// Loads the client's values into the model, from wire memory where the model uses that, else from
// the client's arrays. Used by one thread. Errors are those of the client and the model.
class ModelValues {
 public:
  // All outlive this. The client works on the model's wire memory, where the model uses that.
  ModelValues(ParameterClient* client, Model* model, const Clock* clock)
      : client_(client),
        model_(model),
        clock_(clock),
        uses_wire_memory_(model->uses_wire_memory()),
        loaded_(model->variables().size()) {}

  // The client's values are too old, or the ticket wants fresh ones.
  bool MustPull(const Ticket& ticket) const;
  // Fetches the values for the ticket: the newest, or those of its synchronous step, if that is
  // `wanted` until they come. No step may be under way.
  absl::Status Pull(const Ticket& ticket, ParameterClient::StillWanted wanted);
  // The ticket's gradient is at the servers: asks for the values of the next step, if this worker
  // computes nothing else for this one. Pull is called next.
  void PullAhead(const Ticket& ticket);
  // Loads the variables that are not loaded.
  absl::Status Load();
  // Loads variables as they arrive, while others are on their way.
  absl::Status LoadArriving();
  // Marks all variables as not loaded, because the client's values change.
  void Invalidate() { loaded_.assign(loaded_.size(), false); }
  // The client's values arrived at `time`, on the monotonic clock.
  void NoteArrived(absl::Duration time) { arrived_ = time; }

  bool uses_wire_memory() const { return uses_wire_memory_; }

 private:
  absl::Status LoadVariable(size_t variable);

  ParameterClient* const client_;
  Model* const model_;
  const Clock* const clock_;
  const bool uses_wire_memory_;

  // By variable: the model holds the client's current values.
  std::vector<bool> loaded_;
  absl::Duration arrived_ = -absl::InfiniteDuration();
  // The newest lease for which fresh values were pulled.
  uint64_t fresh_lease_ = 0;
  // PullAhead has asked, and Pull has not been called since.
  bool ahead_ = false;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_MODEL_VALUES_H_
