// When a server that was told to stop may go.
//
// A whole job is often told to stop at once: Kubernetes ends all pods of a job that is deleted or
// suspended, and so does Ctrl-C in a terminal. The chief then needs the servers once more, for its
// last snapshot.
#ifndef KEELSON_PS_SERVER_SERVICE_DEPARTURE_H_
#define KEELSON_PS_SERVER_SERVICE_DEPARTURE_H_

#include <functional>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

// What a server knows of the chief's intentions.
struct ChiefSign {
  // Since its last call; infinite when it never called.
  absl::Duration silence = absl::InfiniteDuration();
  // It said that it was told to stop, too.
  bool stopping = false;
};

struct DepartureLimits {
  // A chief that calls less often than this has ended; it calls four times a second.
  absl::Duration silence = absl::Seconds(1);
  // A chief that has not said by then that it stops stays: this server alone was told to.
  absl::Duration announcement = absl::Seconds(3);
  // The server goes whatever the chief does: somebody waits with SIGKILL.
  absl::Duration longest = absl::Seconds(20);
};

// `waited`: since the server was told to stop.
bool MustLinger(const ChiefSign& chief, absl::Duration waited, const DepartureLimits& limits);

// Returns when the server may go, at once when `end` is raised. `chief` is asked some times a
// second.
void LingerForChief(const std::function<ChiefSign()>& chief, const DepartureLimits& limits,
                    const Clock* clock, const StopSignal& end);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_DEPARTURE_H_
