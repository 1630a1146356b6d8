// Ends the memberships whose lease has passed, for as long as the chief runs.
#ifndef KEELSON_CHIEF_LIFECYCLE_LEASE_WATCH_H_
#define KEELSON_CHIEF_LIFECYCLE_LEASE_WATCH_H_

#include <optional>

#include "absl/time/time.h"
#include "chief/coordination/member_roster.h"
#include "chief/servers/server_group.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

// Runs on a thread of its own and touches no file, so that storage that hangs delays the expiry of
// leases no more than anything else does. For the same reason it is what cancels calls about files
// that have not ended when the chief must leave. Not thread-safe.
class LeaseWatch {
 public:
  struct Options {
    // A member that has sent nothing for this long is lost.
    absl::Duration lease = absl::Seconds(10);
    // Calls about files are cancelled when they have not ended this long after `stop` was raised.
    absl::Duration leave_within = absl::Seconds(100);
  };

  // `process_clock` shows how long this process stood still: a clock that goes on meanwhile, so not
  // one that a test of the job moves. When `stop` is raised, the chief is to leave. All outlive
  // this.
  LeaseWatch(const Options& options, MemberRoster* roster, ServerGroup* servers,
             const Clock* process_clock, const StopSignal* stop)
      : options_(options),
        roster_(roster),
        servers_(servers),
        process_clock_(process_clock),
        stop_(stop) {}

  // Looks ten times a second until `end` is raised, and at least once.
  void Run(const StopSignal& end);

  // Extends all leases by the time that this process stood still since the last look, cancels calls
  // about files when their time has passed, excuses workers while a server is away, and ends what
  // has expired. Public for tests; Run calls it.
  void Look();

 private:
  const Options options_;
  MemberRoster* const roster_;
  ServerGroup* const servers_;
  const Clock* const process_clock_;
  const StopSignal* const stop_;

  std::optional<absl::Duration> last_look_;  // on the process's clock
  absl::Duration leave_by_ = absl::InfiniteDuration();
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_LEASE_WATCH_H_
