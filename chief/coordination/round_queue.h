// Synchronous mode: the rounds that are to be committed at the servers.
#ifndef KEELSON_CHIEF_COORDINATION_ROUND_QUEUE_H_
#define KEELSON_CHIEF_COORDINATION_ROUND_QUEUE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/sync_rounds.h"
#include "core/base/stop_signal.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes.
class RoundQueue {
 public:
  // A step whose gradients are to be applied: {step, attempt, contributions}.
  using Round = SyncRounds::Round;

  // `state` outlives this.
  explicit RoundQueue(CoordinatorState* state) : state_(state) {}

  // A round whose pushes are all at the servers, to be committed there. The same one is returned
  // until it is reported as committed or failed, so pause before trying it again. Returns nothing
  // when there is none within `max_wait`, or when `stop` (may be null) is raised.
  std::optional<Round> WaitForRound(absl::Duration max_wait, const StopSignal* stop = nullptr);
  // At least one server has applied the round, and its step counts. A server that could not was
  // restarted and lacks this step like all others since its snapshot.
  void RoundCommitted(const Round& round);
  // No server has applied it, and one cannot: its pushes are asked for again as a new attempt.
  void RoundFailed(const Round& round);
  // A server has committed round `newest`, whoever asked it to; see WorkDispatcher.
  void NoteForeignCommit(int64_t newest);

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_ROUND_QUEUE_H_
