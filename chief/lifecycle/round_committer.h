// Has the servers commit the rounds of synchronous mode.
#ifndef KEELSON_CHIEF_LIFECYCLE_ROUND_COMMITTER_H_
#define KEELSON_CHIEF_LIFECYCLE_ROUND_COMMITTER_H_

#include "absl/status/status.h"
#include "chief/coordination/round_queue.h"
#include "chief/lifecycle/leadership.h"
#include "chief/servers/server_group.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "core/base/trouble_log.h"

namespace keelson {

// Runs on a thread of its own, as a commit waits for every server. In the other modes there are no
// rounds, and it waits. Not thread-safe.
class RoundCommitter {
 public:
  // All outlive this.
  RoundCommitter(RoundQueue* rounds, ServerGroup* servers, Leadership* leadership,
                 const Clock* clock)
      : rounds_(rounds),
        servers_(servers),
        leadership_(leadership),
        trouble_("committing a step", clock) {}

  // Commits each round whose pushes are all at the servers, until `end` is raised or a server obeys
  // another chief, which the leadership is told. A round that no server can apply is computed
  // again; after other errors, which are logged, it is tried again.
  void Run(const StopSignal& end);

 private:
  // One try.
  absl::Status Commit(const RoundQueue::Round& round, const StopSignal& end);

  RoundQueue* const rounds_;
  ServerGroup* const servers_;
  Leadership* const leadership_;
  TroubleLog trouble_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_ROUND_COMMITTER_H_
