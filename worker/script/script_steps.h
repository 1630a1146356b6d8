// The steps of a script within one membership: fetches values, sends gradients, reports.
#ifndef KEELSON_WORKER_SCRIPT_SCRIPT_STEPS_H_
#define KEELSON_WORKER_SCRIPT_SCRIPT_STEPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/client/services/parameter_client.h"
#include "core/data/ticket.h"
#include "worker/chief_session.h"
#include "worker/progress.h"
#include "worker/script/script_rows.h"
#include "worker/script/script_values.h"

namespace keelson {

// What a script says of a step whose gradients lie in the client's memory.
struct ScriptStep {
  // Nothing: it has none, and is left out before there was one.
  std::optional<double> loss = std::nullopt;
  absl::Duration compute, input;
  std::vector<uint64_t> spaces = {};  // that have gradients of rows
  // Variables that have no gradient. What lies in their arrays means nothing.
  std::vector<uint64_t> absent = {};
};

// What steps are made with. All outlive them.
struct ScriptStepParts {
  ChiefSession* session = nullptr;
  Progress* progress = nullptr;
  ParameterClient* client = nullptr;  // on elements, at depth 1
  ScriptValues* values = nullptr;     // of the client
  ScriptRows* rows = nullptr;
  const Clock* clock = nullptr;
};

// Used by one thread. Errors are those of the session and the client.
class ScriptSteps {
 public:
  explicit ScriptSteps(const ScriptStepParts& parts)
      : session_(parts.session),
        progress_(parts.progress),
        client_(parts.client),
        values_(parts.values),
        rows_(parts.rows),
        clock_(parts.clock) {}

  // Fetches the newest values, unless those that the client has are new enough for the ticket, and
  // the rows that are wanted ahead. False: the ticket is not this worker's any more.
  // INVALID_ARGUMENT: gradients were offered.
  absl::StatusOr<bool> Begin(const Ticket& ticket);

  // Gradients of the ticket's step are complete: what can be sent of them is. Nothing happens to a
  // ticket that is not this worker's any more. INVALID_ARGUMENT: there is no such variable, the
  // model has tables, or the values are not held.
  absl::Status Offer(const Ticket& ticket, absl::Span<const uint64_t> variables);

  // Makes zeros of the gradients that the step does not have. INVALID_ARGUMENT: there is no such
  // variable.
  absl::Status Clear(absl::Span<const uint64_t> absent);

  // Has the servers apply the gradients, and fetches the values that come back. Variables whose
  // gradients are absent stay as they are; in synchronous modes, where others wait for their part
  // of the mean, they have what lies in their arrays. Nothing: the gradients do not count, because
  // the ticket is another worker's by now, or the loss is not finite.
  absl::StatusOr<std::optional<PushResult>> Step(const Ticket& ticket, const ScriptStep& step);

  // The ticket is done without gradients. In synchronous modes, where others wait for its part of
  // the mean, they are zeros. A `loss` that is not finite: there is none. False: as Step's nothing.
  // INVALID_ARGUMENT: gradients were offered.
  absl::StatusOr<bool> Skip(const Ticket& ticket, double loss);

  // Gives the script the rows of the request, as they are now.
  absl::Status FetchRows(const RowRequest& request);

  int64_t finished_steps() const { return finished_steps_; }

 private:
  absl::Status Pull(const Ticket& ticket);
  absl::Status CheckOffer() const;
  absl::Status CheckVariables(absl::string_view message,
                              absl::Span<const uint64_t> variables) const;
  // Begins the exchange of a step whose values are there. False: the chief wants no gradients.
  absl::StatusOr<bool> BeginExchange(const Ticket& ticket);
  // Ends it, with the values where the script sees them.
  absl::StatusOr<PushResult> EndExchange(const Ticket& ticket, const ScriptStep& step);
  // Offers the gradients of rows for the step that has begun, and wants rows ahead with its answer.
  absl::Status OfferRows(const ScriptStep& step, bool aggregated);
  void Finish(const Ticket& ticket, const ScriptStep& step, const PushResult& pushed,
              absl::Duration push);

  ChiefSession* const session_;
  Progress* const progress_;
  ParameterClient* const client_;
  ScriptValues* const values_;
  ScriptRows* const rows_;
  const Clock* const clock_;
  absl::Duration arrived_ = -absl::InfiniteDuration();  // the values, on the monotonic clock
  uint64_t fresh_lease_ = 0;  // the newest for which fresh values were pulled
  absl::Duration pull_;       // spent by Begin on the next step
  bool offered_ = false;      // an exchange has begun before its Step
  int64_t finished_steps_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_SCRIPT_STEPS_H_
