// The job's parameter servers as the chief calls them: all at once, or one of them.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_GROUP_H_
#define KEELSON_CHIEF_SERVERS_SERVER_GROUP_H_

#include <atomic>
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
#include "chief/servers/round_gate.h"
#include "chief/servers/server_contacts.h"
#include "chief/servers/server_state.h"
#include "chief/servers/shard_storage.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_pool.h"
#include "core/checkpoint/bundle_index.h"
#include "core/client/services/parameter_control.h"

namespace keelson {

// Thread-safe. Calls of different threads do not wait for each other, except those of CommitRound:
// a server that writes a snapshot, is restored or hangs does not delay calls of the others. Errors
// of a server begin with its name. ABORTED: the server obeys another chief.
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
  };
  struct Server {
    std::string name;     // "ps-0"
    std::string address;  // for messages
    ParameterControl* service;
  };
  struct WrittenSnapshot {
    std::vector<BundleIndexEntry> entries;
    int64_t bytes = 0;
    int64_t longest_cut_microseconds = 0;
  };
  // A cut of all shards, which the servers keep for WriteSnapshot.
  // What the cuts have of all tables.
  struct RowCounts {
    int64_t all = 0;
    int64_t changed = 0;  // since the base
  };
  struct Cut {
    uint64_t id = 0;
    int64_t committed_round = -1;  // the same in all shards; -1: none
    // Of each server: for each table, where its rows are in the whole.
    std::vector<std::vector<v1::TableRows>> tables = {};
    // The same of what has changed since the base, for a delta; empty: none is possible.
    std::vector<std::vector<v1::TableRows>> changes = {};
    RowCounts rows = {};
  };
  // Of tables' rows: see PrepareCutRequest.
  struct CutChanges {
    bool keep = false;
    uint64_t base = 0;  // id of a cut whose snapshot is committed; 0: none
  };
  // See CommitRoundRequest.
  struct Round {
    int64_t step = 0;
    uint32_t attempt = 0;
    uint32_t contributions = 0;
  };

  // `servers[s]` will hold shard s. Services, `storage`, clock and `stop` outlive this.
  ServerGroup(const Options& options, std::vector<Server> servers, ShardStorage* storage,
              const Clock* clock, const StopSignal* stop);

  size_t size() const { return servers_.size(); }
  const std::string& name(size_t s) const { return servers_[s].name; }

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

  // ShardStorage::PrepareInitialValues.
  absl::Status PrepareInitialValues() { return storage_->PrepareInitialValues(*stop_); }

  // Makes every shard ready for these members, from the snapshot of `restore_step` (none: initial
  // values).
  absl::Status Initialize(std::optional<int64_t> restore_step, const v1::MemberList& members);

  // The term that this chief's calls carry.
  uint64_t term() const { return term_; }

  // The shard that the server holds as the survey found it is the job's.
  void Keep(size_t s, const v1::ShardStatus& found) { contacts_.NoteKept(s, found.store_id()); }

  // ---- Calls while the job runs.

  // Whether the server holds a shard that this chief has neither kept nor made.
  bool HoldsForeignShard(size_t s, const v1::ShardStatus& found) {
    return contacts_.HoldsForeignShard(s, found);
  }

  // "ps-1 at host:port" of each server that has not answered yet, does not answer any more, or
  // could not be restored. Never waits.
  std::vector<std::string> Missing() const { return contacts_.Missing(); }

  // Each server as the newest of these calls found it. Never waits.
  std::vector<ServerView> States() const { return contacts_.States(); }

  // The snapshot of this cut is committed; the servers learn it with the next heartbeats.
  void NoteSaved(const Cut& cut) { saved_cut_ = cut.id; }

  // Sends the heartbeat `request` to one server, with the header and the chief's address added.
  absl::Status ChiefHeartbeat(size_t s, v1::ChiefHeartbeatRequest request, v1::ShardStatus* status);

  // Whether the server's newest answer was that of one that knows this epoch's members.
  bool KnowsMembers(size_t s, uint64_t epoch) { return contacts_.KnowsMembers(s, epoch); }

  // The newest epoch whose members, or those of a newer one, every server knows. One that does not
  // answer counts with what it knew: it may still take calls of others.
  uint64_t known_epoch() const { return contacts_.known_epoch(); }

  // Makes one shard ready for these members.
  absl::Status InitializeServer(size_t s, std::optional<int64_t> restore_step,
                                const v1::MemberList& members);

  // Persists `persisted` at every server; OK: each has said that it obeys this chief. Returns the
  // first error.
  absl::Status PersistState(const v1::PersistedJobState& persisted);

  // The newest version of persisted job state that all answering servers have; 0: none. Never
  // falls.
  uint64_t stored_version() const { return contacts_.stored_version(); }

  // Announces these members to every server that answered its last call, together with the job
  // state: so whatever a server knows of a membership, a successor of this chief knows from it.
  // The others do not know the epoch (KnowsMembers).
  void Announce(const v1::MemberList& members, const v1::PersistedJobState& persisted);

  // Asks every server whether it obeys this chief. Returns the first error.
  absl::Status Confirm();

  // Has every server prepare a cut while no round is committed. `begin` is called right before, so
  // that a ledger's state that it takes has the rounds of the cut, and counts no other step as done
  // whose push is not in it. UNAVAILABLE: a server does not answer, or the shards have not
  // committed the same rounds. Those that are behind then count the rounds as lost, so that the
  // next cut is possible.
  absl::StatusOr<Cut> PrepareCut(absl::FunctionRef<void()> begin, const CutChanges& changes);

  // Has every server write its part of this cut as the snapshot of `step`, which has
  // `num_data_shards` data files; with `base`, the snapshot of the cut's base, as a delta on that,
  // which Cut::changes says is possible.
  absl::StatusOr<WrittenSnapshot> WriteSnapshot(const Cut& cut, int64_t step,
                                                size_t num_data_shards,
                                                const std::optional<v1::SnapshotBase>& base);

  // Commits a round whose pushes were all acknowledged by all servers. Servers whose shards were
  // made since, or that are leaving, are asked and commit first: as long as no server has committed
  // the round it can be begun again. Failed calls are repeated until the server answers, or `stop`
  // is raised. OK: committed. A server that was restarted unnoticed has lost this step with those
  // before it; that is logged. FAILED_PRECONDITION: a server lacks pushes, and none has committed
  // the round. CANCELLED: stopped. ABORTED: another chief. When it is committed, `committed` is
  // called before a cut can be prepared.
  absl::Status CommitRound(
      const Round& round, const StopSignal& stop, absl::FunctionRef<void()> committed = [] {});
  // Commits a round at one server, trying for at most `patience` (on the clock).
  // FAILED_PRECONDITION: the server does not have the pushes. UNAVAILABLE, DEADLINE_EXCEEDED: no
  // answer.
  absl::Status CommitRoundAt(size_t s, const Round& round, absl::Duration patience,
                             const StopSignal& stop);
  // Tells a server that the round is committed and that it has lost its pushes; logs `why`.
  // Otherwise as CommitRoundAt.
  absl::Status LoseRoundAt(size_t s, const Round& round, absl::string_view why,
                           absl::Duration patience, const StopSignal& stop);
  // Rounds up to this one are committed. A server that is restored from now on, from whatever
  // snapshot, counts them as done.
  void NoteCommittedRound(int64_t round);

  // Ends the calls under way of Initialize, InitializeServer and WriteSnapshot, and later ones,
  // with CANCELLED.
  void CancelFileCalls();

  // Tells every server that the job is over. Those that do not answer are logged.
  void Finish();

 private:
  const Server& server(size_t s) const { return servers_[s]; }
  // Calls all servers side by side; returns the first error, after the server's name.
  absl::Status ForEach(absl::FunctionRef<absl::Status(size_t)> call);
  absl::Status Named(size_t s, const absl::Status& status) const;
  absl::Status Probe(size_t s);
  bool HasJob(const v1::ShardStatus& found) const;
  absl::Status CallCommitRound(size_t s, const v1::CommitRoundRequest& request,
                               absl::Duration patience, const StopSignal& stop);
  v1::CommitRoundRequest RequestOf(const Round& round) const;
  // The servers that may lack pushes of the round under way, and the others.
  std::pair<std::vector<size_t>, std::vector<size_t>> Doubtful() const;
  // Has these servers commit the round, or say whether they would, side by side. Returns their
  // answers in the same order.
  std::vector<absl::Status> CommitAt(const std::vector<size_t>& at, const Round& round,
                                     bool only_ask, const StopSignal& stop);
  // Puts the servers' rows of each table one behind the other. INTERNAL: their tables differ.
  absl::Status PlaceRows(const std::vector<v1::PrepareCutResponse>& cuts, Cut* cut) const;
  // UNAVAILABLE: a shard has committed other rounds than another.
  absl::Status CheckEqual(const std::vector<v1::PrepareCutResponse>& cuts);
  v1::RequestHeader Header() const;
  // Before the first call of the server: its term gives way to this chief's.
  absl::Status OutrankIn(size_t s);

  const Options options_;
  const std::vector<Server> servers_;
  ShardStorage* const storage_;
  const Clock* const clock_;
  const StopSignal* const stop_;

  ServerContacts contacts_;
  std::atomic<uint64_t> term_;
  Mutex term_mu_;  // held while the term is raised

  mutable Mutex mu_;
  v1::InitializeShardRequest shards_ ABSL_GUARDED_BY(mu_);

  std::atomic<int64_t> committed_round_{-1};
  std::atomic<uint64_t> saved_cut_{0};
  RoundGate gate_;
  Mutex rounds_mu_;
  ThreadPool rounds_pool_ ABSL_GUARDED_BY(rounds_mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_GROUP_H_
