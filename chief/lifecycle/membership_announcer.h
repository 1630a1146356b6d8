// Tells the servers who belongs to the job, and hands on the work of those who no longer do.
#ifndef KEELSON_CHIEF_LIFECYCLE_MEMBERSHIP_ANNOUNCER_H_
#define KEELSON_CHIEF_LIFECYCLE_MEMBERSHIP_ANNOUNCER_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "chief/coordination/ended_members.h"
#include "chief/coordination/job_persistence.h"
#include "chief/coordination/member_roster.h"
#include "chief/servers/server_group.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"

namespace keelson {

// The work of a membership that is over goes to others only when every server refuses its pushes.
// Run has a thread of its own, as announcing waits for the servers that answer; HandOnTold may be
// called by any thread meanwhile.
class MembershipAnnouncer {
 public:
  // `persist_now` has the job state stored at every server soon, and does not wait for that. What
  // it uses, and all others, outlive this.
  MembershipAnnouncer(MemberRoster* roster, JobPersistence* persistence, ServerGroup* servers,
                      const Clock* clock, std::function<void()> persist_now)
      : roster_(roster),
        persistence_(persistence),
        servers_(servers),
        clock_(clock),
        persist_now_(std::move(persist_now)) {}

  // Until `end` is raised: announces the members whenever a membership has ended, and has the job
  // state persisted as soon as a successor must know what has changed in it, at most ten times a
  // second.
  void Run(const StopSignal& end);

  // Every server knows the members of this epoch: the work of those who are not among them is
  // handed on.
  void HandOnTold(uint64_t epoch);

 private:
  void AnnounceEnded();

  MemberRoster* const roster_;
  JobPersistence* const persistence_;
  ServerGroup* const servers_;
  const Clock* const clock_;
  const std::function<void()> persist_now_;
  EndedMembers ended_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_LIFECYCLE_MEMBERSHIP_ANNOUNCER_H_
