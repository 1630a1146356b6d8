// The state of the job: who takes part, which work is leased, how far training is. All decisions
// are made here, without messages or transport.
#ifndef KEELSON_CHIEF_COORDINATION_COORDINATOR_H_
#define KEELSON_CHIEF_COORDINATION_COORDINATOR_H_

#include "chief/coordination/coordinator_state.h"
#include "chief/coordination/evaluations.h"
#include "chief/coordination/job_control.h"
#include "chief/coordination/job_persistence.h"
#include "chief/coordination/job_reports.h"
#include "chief/coordination/member_calls.h"
#include "chief/coordination/member_requests.h"
#include "chief/coordination/member_roster.h"
#include "chief/coordination/round_queue.h"
#include "chief/coordination/shard_addresses.h"
#include "chief/coordination/snapshot_wishes.h"
#include "chief/coordination/stream_intake.h"
#include "chief/coordination/training_start.h"
#include "core/base/clock.h"

namespace keelson {

// Owns the state and its faces, each of which has the calls of one kind of caller: give a caller
// the faces that it needs. They are thread-safe and live as long as this. Their calls take the one
// lock of the state (CoordinatorState), so that each sees all that an earlier call of any face has
// changed.
class Coordinator {
 public:
  using Options = CoordinatorState::Options;

  // `clock` outlives this.
  Coordinator(const Options& options, const Clock* clock) : state_(options, clock) {}

  // Members join, report and leave.
  MemberCalls* members() { return &members_; }
  // They ask for the model and for work.
  MemberRequests* requests() { return &requests_; }
  // Who belongs to the job: leases expire, and the servers are told.
  MemberRoster* roster() { return &roster_; }
  // Training begins, or goes on where a predecessor was.
  TrainingStart* start() { return &start_; }
  // The shards' servers change.
  ShardAddresses* shards() { return &shards_; }
  // A successor and snapshots need the job's state.
  JobPersistence* persistence() { return &persistence_; }
  // Rounds are committed at the servers.
  RoundQueue* rounds() { return &rounds_; }
  // Snapshots are written and evaluated.
  Evaluations* evaluations() { return &evaluations_; }
  // Somebody wants a snapshot now.
  SnapshotWishes* wishes() { return &wishes_; }
  // A stream's files come.
  StreamIntake* stream() { return &stream_; }
  // The job's phase and mode change; training pauses and ends.
  JobControl* control() { return &control_; }
  // How the job is doing.
  JobReports* reports() { return &reports_; }
  const JobReports* reports() const { return &reports_; }

 private:
  CoordinatorState state_;
  MemberCalls members_{&state_};
  MemberRequests requests_{&state_};
  MemberRoster roster_{&state_};
  TrainingStart start_{&state_};
  ShardAddresses shards_{&state_};
  JobPersistence persistence_{&state_};
  RoundQueue rounds_{&state_};
  Evaluations evaluations_{&state_};
  SnapshotWishes wishes_{&state_};
  StreamIntake stream_{&state_};
  JobControl control_{&state_};
  JobReports reports_{&state_};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_COORDINATOR_H_
