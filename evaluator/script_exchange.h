// The evaluator's exchanges with its script, one at a time: batches to score, and predictions
// between them; with the rows of tables that the script asks for meanwhile.
#ifndef KEELSON_EVALUATOR_SCRIPT_EXCHANGE_H_
#define KEELSON_EVALUATOR_SCRIPT_EXCHANGE_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "evaluator/script_row_answers.h"

namespace keelson {

// TakeTurn and GiveTurn may be called by any thread; who has the turn may use the socket and the
// memory that is shared with the script, and the other methods.
class ScriptExchange {
 public:
  // All outlive this.
  ScriptExchange(ScriptSocket* script, const Clock* clock, const StopSignal* stop)
      : script_(script), clock_(clock), stop_(stop) {}

  // From now on it answers messages about rows. Outlives this.
  void AnswerRowsWith(ScriptRowAnswers* rows) { rows_ = rows; }

  // Waits until `until` at most. UNAVAILABLE: another thread had it. CANCELLED: `stop` was raised.
  absl::Status TakeTurn(absl::Duration until);
  void GiveTurn();

  // The next message but for those about rows, which are answered, and for the answer to a
  // prediction that was given up. DEADLINE_EXCEEDED: none came until `until`. CANCELLED: `stop` was
  // raised, or the script has ended. Errors of ScriptRowAnswers, after which the script waits for
  // an answer that it does not get: from then on they are all that there is.
  absl::StatusOr<ScriptMessage> Await(absl::Duration until);

  // Has the script predict: `request` has this number behind the step. Returns its answer, the
  // fields behind the number. UNAVAILABLE: it still is at a prediction that was given up. Otherwise
  // as Await: then the prediction is given up. INVALID_ARGUMENT: another message.
  absl::StatusOr<ScriptMessage> Predict(uint64_t number, const ScriptMessage& request,
                                        absl::Duration until);

 private:
  // Whether it was about rows.
  absl::StatusOr<bool> AnswerRows(const ScriptMessage& message);
  // The answer to a prediction that was given up; false: it is another message.
  bool IsLate(const ScriptMessage& message);

  ScriptSocket* const script_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  Mutex mu_;
  CondVar given_;
  bool taken_ ABSL_GUARDED_BY(mu_) = false;
  // Of who has the turn: what answers messages about rows, if anything; why it could not; and the
  // prediction that was given up and is not answered.
  ScriptRowAnswers* rows_ = nullptr;
  absl::Status broken_;
  std::optional<uint64_t> given_up_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_EXCHANGE_H_
