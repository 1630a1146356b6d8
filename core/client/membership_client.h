// How a task becomes a member of the job: it registers with the chief, and is patient.
#ifndef KEELSON_CORE_CLIENT_MEMBERSHIP_CLIENT_H_
#define KEELSON_CORE_CLIENT_MEMBERSHIP_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/client/chief_service.h"
#include "core/client/retry.h"
#include "core/cluster/task.h"

namespace keelson {

// Thread-safe.
class MembershipClient {
 public:
  struct Options {
    Task self;
    uint64_t incarnation = 0;
    uint64_t config_hash = 0;
    std::string peer;  // "host:pid"
    // For a chief that is away.
    RetryOptions retry;
    // While another incarnation holds the task: how often to ask again, and for how long beyond the
    // lease, which the chief tells.
    absl::Duration held_pause = absl::Milliseconds(500);
    absl::Duration held_margin = absl::Seconds(5);
  };

  // All outlive the client. `stop` ends every wait.
  MembershipClient(Options options, ChiefService* chief, const Clock* clock,
                   const StopSignal* stop);

  // What stands first in every request.
  v1::RequestHeader Header() const;

  // Registers, also again after the chief has lost or forgotten this task. One call at a time, the
  // others wait. FAILED_PRECONDITION: another configuration. ALREADY_EXISTS: the task is held by
  // a live process. ABORTED: another incarnation has replaced this one. UNAVAILABLE,
  // DEADLINE_EXCEEDED: the chief was away for longer than `retry` allows. CANCELLED: stopped.
  absl::Status Register();

 private:
  absl::StatusOr<absl::Duration> AskLease();

  const Options options_;
  ChiefService* const chief_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  Mutex register_mu_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_MEMBERSHIP_CLIENT_H_
