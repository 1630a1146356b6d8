// The job's parameter servers as the chief calls them: all at once, or one of them.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_GROUP_H_
#define KEELSON_CHIEF_SERVERS_SERVER_GROUP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/servers/replicas.h"
#include "chief/servers/round_commits.h"
#include "chief/servers/server_calls.h"
#include "chief/servers/server_contacts.h"
#include "chief/servers/server_cuts.h"
#include "chief/servers/server_state.h"
#include "chief/servers/shard_storage.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/cluster/task.h"

namespace keelson {

// Thread-safe. Calls of different threads do not wait for each other, except those of
// RoundCommits::Commit: a server that writes a snapshot, is restored or hangs does not delay calls
// of the others. Errors of a server begin with its name. ABORTED: the server obeys another chief.
class ServerGroup {
 public:
  struct Options {
    v1::RequestHeader header;  // the chief's
    // Takes a term above one that a server knows, for a chief that has not called it; its error
    // ends the calls at the start. Null, where there is no storage to keep terms: the next one,
    // until the first server has admitted this chief.
    std::function<absl::StatusOr<uint64_t>(uint64_t known)> raise_term;
    uint64_t config_hash = 0;
    // Told to the servers, for workers that look for the chief. May be empty.
    std::string chief_address;
    // How long a server may take to appear where no job runs yet, and how often missing ones are
    // logged meanwhile.
    absl::Duration startup_timeout = absl::Minutes(10);
    absl::Duration report_every = absl::Seconds(30);
    // A process of a running job whose address nobody knows is waited for this long before the
    // others are asked for its shard: those that live register within a second or two, and may have
    // the only copy of another shard too.
    absl::Duration registration_patience = absl::Seconds(5);
    // Shards that may be served at several places have a replica at one of them, in synchronous
    // jobs.
    bool replicas = false;
  };
  using Server = ServerCalls::Server;

  // `servers[s]` will hold shard s. Services, `storage`, clock and `stop` outlive this.
  ServerGroup(const Options& options, std::vector<Server> servers, ShardStorage* storage,
              const Clock* clock, const StopSignal* stop);

  size_t size() const { return calls_.size(); }
  const std::string& name(size_t s) const { return calls_.name(s); }

  // Rounds: a server that is restored from now on, from whatever snapshot, counts those that are
  // committed as done.
  RoundCommits* rounds() { return &rounds_; }
  // Cuts of all shards, and what is written of them.
  ServerCuts* cuts() { return &cuts_; }

  // ---- Calls at the start.

  // Waits until every server answers, and makes the chief known to it: as long as it takes while
  // one that answers holds its shard and the job state of a predecessor, since those that are
  // missing may hold a later state or round of that job. Asks all of them each time, until all
  // answer at once. DEADLINE_EXCEEDED: no server has held a running job for `startup_timeout`;
  // names those that did not answer. CANCELLED: stopped. ABORTED: a server that had admitted this
  // chief obeys another one.
  // FAILED_PRECONDITION: a server has another configuration, or is of another build.
  // PERMISSION_DENIED: it knows another token. Errors of Options::raise_term. A server that waits
  // for another chief's silence (ALREADY_EXISTS) is logged with its reason, and waited for.
  absl::Status WaitUntilReachable();

  // The status of each server, with the job state that a chief persisted there.
  absl::StatusOr<std::vector<v1::ShardStatus>> Survey();

  // Sets the description with which shards are initialized from now on, and by which those of a
  // predecessor are known: all of InitializeShardRequest but header, hash, shard number, step and
  // members. Before WaitUntilReachable.
  void Describe(const v1::InitializeShardRequest& shards);

  // InitializeShardRequest.max_steps of shards that are initialized from now on.
  void SetMaxSteps(int64_t max_steps);
  int64_t max_steps() const;

  // ShardStorage::PrepareInitialValues.
  absl::Status PrepareInitialValues() { return storage_->PrepareInitialValues(*stop_); }

  // Makes every shard ready for these members, from the snapshot of `restore_step` (none: initial
  // values).
  absl::Status Initialize(std::optional<int64_t> restore_step, const v1::MemberList& members);

  // The term that this chief's calls carry.
  uint64_t term() const { return calls_.term(); }

  // The shard that the server holds as the survey found it is the job's.
  void Keep(size_t s, const v1::ShardStatus& found) { contacts().NoteKept(s, found.store_id()); }

  // ---- Calls while the job runs.

  // Whether the server holds a shard that this chief has neither kept nor made.
  bool HoldsForeignShard(size_t s, const v1::ShardStatus& found) {
    return contacts().HoldsForeignShard(s, found);
  }

  // Whether a shard that may be served at several places is not where it is served at present:
  // waits for a move that is under way, and asks. False also when there is no answer.
  bool LacksShard(size_t s);

  // "ps-1 at host:port" of each server that has not answered yet, does not answer any more, or
  // could not be restored. Never waits.
  std::vector<std::string> Missing() const { return contacts().Missing(); }

  // Each server as the newest of these calls found it. Never waits.
  std::vector<ServerView> States() const { return contacts().States(); }

  // Sends the heartbeat `request` to one server, with the header and the chief's address added.
  absl::Status ChiefHeartbeat(size_t s, v1::ChiefHeartbeatRequest request, v1::ShardStatus* status);

  // Whether the server's newest answer was that of one that knows this epoch's members.
  bool KnowsMembers(size_t s, uint64_t epoch) { return contacts().KnowsMembers(s, epoch); }

  // The newest epoch whose members, or those of a newer one, every server knows. One that does not
  // answer counts with what it knew: it may still take calls of others.
  uint64_t known_epoch() const { return contacts().known_epoch(); }

  // ---- Shards that may be served at several places (ServerCalls::Server::others). Calls about one
  // shard wait for each other.

  // Whether the shard is not where it should be: not at its home, or, if the job is `synchronous`,
  // without the replica that it should have.
  bool Misplaced(size_t s, bool synchronous) const;
  // The shard's replica does not get the updates any more: there is none from now on.
  void ForgetReplica(size_t s);
  // The same, unless Settle has made it in this period of synchronous mode: another one lacks the
  // asynchronous updates between the periods. 0: the job is not synchronous. A replica takes its
  // shard's place only where this was called, and the mode has not changed since.
  void ForgetOldReplica(size_t s, uint64_t sync_period);
  // Whether a replica can take the place of the shard's host.
  bool HasReplica(size_t s) const { return replicas_.Has(s); }
  // Has the shard served at its home, or makes the replica that it lacks, for these members, as far
  // as processes are there that were not asked to stop. True: it has moved. Where there are
  // no replicas, and in jobs that are not synchronous (`sync_period` is 0), this only notes whether
  // HandOver could bring the shard home. The mode does not change meanwhile: asynchronous updates
  // after the copy would be lost. UNAVAILABLE: no such process answers. Errors of the calls.
  absl::StatusOr<bool> Settle(size_t s, uint64_t sync_period, const v1::MemberList& members);
  // Whether the shard has other places than the one that serves it.
  bool MayMove(size_t s) const { return calls_.places(s) > 1; }
  // Whether Settle has found the shard's home ready for HandOver.
  bool MayGoHome(size_t s) const { return may_go_home_[s]; }
  // Has the shard's replica take the place of its host, which is lost; `restarted`: another process
  // answers in its place. UNAVAILABLE: the replica does not answer.
  absl::Status MoveToReplica(size_t s, bool restarted = false);
  // Has another process serve the shard, the first of its places that is there and was not asked to
  // stop, for these members; the one that has served it drops it. Every push that was acknowledged
  // must have returned, and none may be under way, unless the process was asked to stop.
  // UNAVAILABLE: there is no such place, or one does not answer; the shard stays.
  absl::Status HandOver(size_t s, const v1::MemberList& members);
  // Where each shard is served.
  std::vector<std::string> Addresses() const;
  // The task that hosts the shard; none: it is a parameter server's.
  std::optional<Task> HostOf(size_t s) const { return calls_.at(s).host; }
  // The process of this task is reached there from now on, where its service calls it too; empty:
  // nobody knows where.
  void NoteAddress(const Task& host, const std::string& address) {
    contacts().NoteAddress(host, address);
  }

  // Makes one shard ready for these members.
  absl::Status InitializeServer(size_t s, std::optional<int64_t> restore_step,
                                const v1::MemberList& members);

  // Persists `persisted` at every server; OK: each has said that it obeys this chief. Returns the
  // first error.
  absl::Status PersistState(const v1::PersistedJobState& persisted);

  // The newest version of persisted job state that all answering servers have; 0: none. Never
  // falls.
  uint64_t stored_version() const { return contacts().stored_version(); }

  // Announces these members to every server that answered its last call, together with the job
  // state: so whatever a server knows of a membership, a successor of this chief knows from it.
  // The others do not know the epoch (KnowsMembers).
  void Announce(const v1::MemberList& members, const v1::PersistedJobState& persisted);

  // Asks every server whether it obeys this chief. Returns the first error.
  absl::Status Confirm();

  // Ends the calls under way of Initialize, InitializeServer and ServerCuts::Write, and later ones,
  // with CANCELLED.
  void CancelFileCalls();

  // Tells every server that the job is over. Those that do not answer are logged.
  void Finish();

 private:
  ServerContacts& contacts() { return calls_.contacts(); }
  const ServerContacts& contacts() const { return calls_.contacts(); }
  v1::InitializeShardRequest ShardRequest(size_t s, const v1::MemberList& members) const;
  // Whether this place of the shard is there, and was not asked to stop.
  bool Stays(size_t s, size_t place);
  // The number of the first place that stays and does not serve the shard. UNAVAILABLE: none does.
  absl::StatusOr<size_t> FreePlace(size_t s);
  absl::Status MakeAt(size_t s, size_t place, const v1::MemberList& members, bool move);
  // The shard has no replica at this place, which it has come from, if the process there leaves.
  void DropWhereLeaving(size_t s, size_t place);
  // Replicas::Move, to where the job state is stored first: a process that has just come may be the
  // only one that is left when this chief ends.
  absl::Status MoveTo(size_t s, bool both_equal);
  // Adds what every heartbeat has.
  void Complete(v1::ChiefHeartbeatRequest* request) const;
  // The request may have a newer job state.
  void NoteJobState(const v1::ChiefHeartbeatRequest& request);
  absl::Status StoreJobStateAt(size_t s, size_t place);
  // Replicas::FindShard, of the job's placement.
  bool FindShard(size_t s, v1::ShardStatus* found);
  // `all_registered`: a process whose address nobody knows is not waited for any more.
  absl::Status Probe(size_t s, bool all_registered);
  bool HasJob(const v1::ShardStatus& found) const;
  // Before the first call of the server: its term gives way to this chief's.
  absl::Status OutrankIn(size_t s);

  const Options options_;
  ShardStorage* const storage_;
  const Clock* const clock_;
  const StopSignal* const stop_;

  ServerCalls calls_;
  Replicas replicas_;
  RoundCommits rounds_;
  ServerCuts cuts_;
  Mutex term_mu_;               // held while the term is raised
  std::deque<Mutex> place_mu_;  // by shard; held while it moves, or gets a replica
  std::vector<std::atomic<bool>> may_go_home_;
  // By shard: the period of synchronous mode in which its replica was made.
  std::vector<std::atomic<uint64_t>> replica_periods_;

  mutable Mutex mu_;
  v1::InitializeShardRequest shards_ ABSL_GUARDED_BY(mu_);
  // The newest job state that was sent to a server, and its version; nothing else.
  v1::ChiefHeartbeatRequest job_state_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_GROUP_H_
