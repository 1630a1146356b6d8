// Decides when a server that was asked to stop may exit.
//
// All tasks of a job are often asked to stop at once: Kubernetes ends all pods of a job that is
// deleted or suspended, and so does Ctrl-C in a terminal. The chief then needs the servers once
// more, for its last snapshot. A server that is asked alone, as when its node is drained, stays
// until the chief has taken a snapshot of what it holds.
#ifndef KEELSON_PS_SERVER_SERVICE_DEPARTURE_H_
#define KEELSON_PS_SERVER_SERVICE_DEPARTURE_H_

#include <functional>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

// A server's knowledge of the chief's intentions.
struct ChiefSign {
  // The time since its last call; infinite when it never called.
  absl::Duration silence = absl::InfiniteDuration();
  // The chief has announced that it was asked to stop, too.
  bool stopping = false;
  // No committed snapshot has all of the server's updates; the chief has been told to take one.
  bool unsaved = false;
};

struct DepartureLimits {
  // A chief that has not called for this long has ended; it calls four times a second.
  absl::Duration silence = absl::Seconds(1);
  // The same for a chief that has not announced its own stop, while no snapshot has what the server
  // holds: it may be slow, or about to be started again, and what it does not fetch is lost.
  absl::Duration silence_unsaved = absl::Seconds(5);
  // A chief that has not announced its own stop by then stays: only this server was asked to stop.
  absl::Duration announcement = absl::Seconds(3);
  // The server exits after this long in any case, before SIGKILL comes (--leave_within).
  absl::Duration longest = absl::Seconds(100);
};

// `waited` is the time since the server was asked to stop.
bool MustLinger(const ChiefSign& chief, absl::Duration waited, const DepartureLimits& limits);

// Returns when the server may exit, or `end` is raised. Calls `chief` several times a second, and
// `close` before it returns: that has nothing applied any more, and returns true; false: something
// came since `chief` was called that no snapshot has.
void LingerForChief(const std::function<ChiefSign()>& chief, const std::function<bool()>& close,
                    const DepartureLimits& limits, const Clock* clock, const StopSignal& end);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_DEPARTURE_H_
