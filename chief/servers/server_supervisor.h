// Supervises the parameter servers while the job runs: persists the chief's job state there,
// notices servers that are away, and makes restarted ones ready again. Each server has a thread of
// its own, so that one that hangs or is being restored delays no other.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_SUPERVISOR_H_
#define KEELSON_CHIEF_SERVERS_SERVER_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/servers/server_group.h"
#include "chief/servers/shared_job_state.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/base/trouble_log.h"
#include "core/checkpoint/snapshot_info.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

// Thread-safe.
class ServerSupervisor {
 public:
  struct Pauses {
    // The pause between two calls of a server that answers, and of one that does not.
    absl::Duration visit = absl::Milliseconds(250);
    absl::Duration away = absl::Milliseconds(100);
    // The time between two stores of the job state at a server.
    absl::Duration persist = absl::Seconds(1);
    // The pause between two tries to make a replica, or to have a shard go home.
    absl::Duration replica = absl::Milliseconds(500);
    // The pause after a restore that failed.
    absl::Duration restore = absl::Seconds(1);
    // How long a process that does not answer, and has the only copy of a shard, is waited for
    // before the shard is made of a snapshot.
    absl::Duration only_copy = absl::Minutes(1);
    // How long a file that a server does not find is waited for before an older snapshot is tried.
    absl::Duration missing = absl::Minutes(1);
  };

  // The job as the supervisor sees it. All are thread-safe.
  struct Job {
    // The job state to persist.
    std::function<v1::PersistedJobState()> persisted;
    // Who belongs to the job, and only the epoch of that list.
    std::function<v1::MemberList()> members;
    std::function<uint64_t()> member_epoch;
    // All servers that answer hold the persisted job state of this version.
    std::function<void(uint64_t version)> note_stored;
    // The snapshots, newest first. Where there is none, a shard starts with initial values if the
    // job state knows of no step; otherwise they are waited for.
    std::function<absl::StatusOr<std::vector<SnapshotInfo>>()> snapshots;
    // A newer chief has called a server, so this one must end.
    std::function<void(const absl::Status& status)> note_replaced;
    // A server has committed this round. May be null.
    std::function<void(int64_t round)> note_committed = nullptr;
    // Every server knows the members of this epoch, or of a newer one. May be null.
    std::function<void(uint64_t epoch)> note_told = nullptr;
    // A shard is served elsewhere from now on. `lost`: the task that has hosted it, if that is
    // lost. May be null.
    std::function<void(const std::optional<Task>& lost)> note_moved = nullptr;
    // Returns the number of the period of synchronous mode, in which every update comes with a
    // round, which replicas get too; 0: the mode is another one. It stays until `release_mode` is
    // called. Null, both: every update does.
    std::function<uint64_t()> hold_mode = nullptr;
    std::function<void()> release_mode = nullptr;
    // Asks the storage whether this chief still leads the job. ALREADY_EXISTS: another one does,
    // and no shard is made. Other errors do not tell. Null: this chief leads.
    std::function<absl::Status()> confirm = nullptr;
  };

  // Servers are ready, or become so once they are found empty. `servers`, the clock and what the
  // job's functions use outlive this.
  ServerSupervisor(ServerGroup* servers, Job job, const Clock* clock, const Pauses& pauses);
  ~ServerSupervisor();

  // Has the shard of `s` restored in its first visit, whatever the server holds. Before Start.
  void RestoreFirst(size_t s) { watches_[s].foreign = true; }

  void Start();
  // Cancels the group's calls about files for good, and returns when those under way have ended.
  // The destructor calls it, too.
  void Stop();

  // Makes all threads visit their servers now, with the newest job state, without waiting for them.
  void PersistNow();

  // Visits one server once; returns the pause until the next visit. Public for tests; Start's
  // threads call it. One thread at a time per server.
  absl::Duration Visit(size_t s);

 private:
  // The state of a server's supervision; used by its thread only.
  struct Watch {
    Watch(const std::string& name, const Clock* clock)
        : restores("restoring " + name, clock, absl::Seconds(30)) {}

    bool away = false;
    int silences = 0;  // in a row
    // Since when the replica has not answered either, while the host is lost; absent: it has, or
    // there is none.
    std::optional<absl::Duration> replica_silent_since;
    absl::Duration replica_due = -absl::InfiniteDuration();
    bool foreign = false;  // its shard is not this job's
    // Since when a file of a snapshot has been missing; absent: none is.
    std::optional<absl::Duration> missing_since;
    absl::Duration heard;  // when it was ready the last time
    absl::Duration persist_due = -absl::InfiniteDuration();
    uint64_t stored = 0;  // SharedJobState::State::number of the newest state that it took
    uint64_t persist_requests = 0;
    TroubleLog restores;

    // The shard is served by another process from now on.
    void NoteMoved(absl::Duration now) {
      away = foreign = false;
      silences = 0;
      replica_silent_since.reset();
      heard = now;
      persist_due = -absl::InfiniteDuration();
    }
  };

  void Run(size_t s);
  bool WaitForTurn(size_t s, absl::Duration pause);
  // Has the replica take the shard's place, if the host is lost. False: the host is not lost, or
  // the shard has no replica that answers.
  bool MoveIfLost(size_t s, bool empty, Watch* watch);
  // Whether the replica of a lost shard, which does not answer, may still come back with updates
  // that no snapshot has.
  bool AwaitsReplica(const Watch& watch) const;
  // Has the shard be where it should be, as far as processes are there again.
  void KeepInPlace(size_t s, absl::Duration now, Watch* watch);
  void TrySettle(size_t s, uint64_t sync_period, Watch* watch);
  absl::Status Restore(size_t s, Watch* watch);
  // ALREADY_EXISTS: this chief does not lead the job any more.
  absl::Status CheckLeads() const;
  // Returns the snapshot that was restored, or nothing for the initial values.
  absl::StatusOr<std::optional<SnapshotInfo>> RestoreNewest(size_t s, Watch* watch);
  absl::Status InitializeAnew(size_t s);
  // Whether a file that is missing may still appear.
  bool MayAppear(Watch* watch) const;
  void SayRestored(size_t s, const Watch& watch, const std::optional<SnapshotInfo>& snapshot);
  uint64_t persist_requests() const;

  ServerGroup* const servers_;
  const Job job_;
  const Clock* const clock_;
  const Pauses pauses_;
  SharedJobState state_;

  std::vector<Watch> watches_;  // by server
  std::vector<Thread> threads_;

  mutable Mutex mu_;
  CondVar changed_;
  uint64_t persist_requests_ ABSL_GUARDED_BY(mu_) = 0;  // calls of PersistNow
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_SUPERVISOR_H_
