// The replicas of shards in jobs without parameter servers, as the chief keeps them: where each one
// is, whether it is equal to its shard, and what becomes of it when its shard's host is lost.
//
// A shard may be at any process that hosts shards: at its home, or at one of those that come after
// it. One of them serves the shard, and another one may hold its replica. A round is committed in
// this order: each replica fetches the sums of its shard (Fetch), the shards commit, the replicas
// commit. Until the first shard has committed, the round can be begun again; from then on each
// shard with a replica has the sums at two places. So a host that dies at any instant takes nothing
// with it that the replica does not have, or that the workers cannot send again.
#ifndef KEELSON_CHIEF_SERVERS_REPLICAS_H_
#define KEELSON_CHIEF_SERVERS_REPLICAS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/servers/server_calls.h"
#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Thread-safe; one round is committed at a time, and calls that change where a shard and its
// replica are do not overlap for one shard.
class Replicas {
 public:
  // `calls` outlives this. No shard has a replica at first.
  explicit Replicas(ServerCalls* calls);

  // Whether the shard has a replica that is equal to it.
  bool Has(size_t s) const { return at(s) != kNowhere; }
  // The number of the place that holds the replica (ServerCalls::place); kNowhere: there is none.
  static constexpr size_t kNowhere = std::numeric_limits<size_t>::max();
  size_t at(size_t s) const { return copy(s).place; }

  // Has every replica fetch what the round's pushes have added up to. A replica that does not
  // answer is given up, which is logged. FAILED_PRECONDITION: a shard does not have exactly the
  // round's contributions. UNAVAILABLE: a shard's host does not answer; it may be lost.
  absl::Status Fetch(const v1::CommitRoundRequest& round);

  // Commits the round at the replica, if there is one, of a shard that has committed it. Errors are
  // those of the call; whether the replica has committed it is not known then.
  absl::Status Commit(size_t s, const v1::CommitRoundRequest& round);
  // The shard's host is there, so that its replica is not needed: it has none from now on, which is
  // logged with the reason. Returns where the replica was.
  size_t GiveUp(size_t s, const absl::Status& why);

  // Makes this place of the shard, which does not serve it, its replica, and has another one drop
  // what it has; no round is committed meanwhile. Errors are those of the calls.
  absl::Status Make(size_t s, size_t place, const v1::InitializeShardRequest& start);

  // The replica serves the shard from now on, and the place that has served it holds none, or, if
  // `both_equal`, the replica. `status`: receives the replica's. UNAVAILABLE: there is no replica,
  // it does not answer, or it was given up before it did.
  absl::Status Move(size_t s, bool both_equal, v1::ShardStatus* status);

  // The shard has no replica from now on.
  void Forget(size_t s) { Exchange(s, Copy()); }
  // This place has neither the shard nor its replica any more: has it drop what it holds, if it
  // answers.
  void DropAt(size_t s, size_t place);

  // The process at this address is lost, or leaves: gives up the replicas that it holds, rather
  // than wait for it with the next round. Not those of shards whose hosts are lost, too: rounds
  // wait for these anyhow, and it may come back with the only copy.
  void NoteLost(const std::string& address);
  // The process at this address is another one: gives up, of those replicas, those that it does not
  // have. It may have got some already.
  void NoteRestarted(const std::string& address);
  // As NoteLost, and has it drop them: a process that leaves stays while it has what no snapshot
  // has, and where it has served a shard before, it takes the replica for that until a round comes.
  // Asks the shards' hosts first: where one does not answer, the replica may be the only copy.
  void NoteLeaving(const std::string& address);

  // How often in a row a process does not answer before it is taken for lost: one that is busy, or
  // whose messages are late, is not, for what it holds is newer than any snapshot.
  static constexpr int kSilencesOfTheLost = 2;

  // At a chief's start: has the shard of this placement served by the place that has its newest
  // state. `found`: receives the status of that place. False: none that answers has it, and nothing
  // has changed.
  bool FindShard(size_t s, uint64_t placement_fingerprint, v1::ShardStatus* found);

 private:
  // A replica: where it is, and in which store. Another process that is reached there, or a shard
  // that was made anew, is none.
  struct Copy {
    size_t place = kNowhere;
    uint64_t store_id = 0;
  };

  Copy copy(size_t s) const;
  // Whether this place of the shard has it in the store with this id, and says so.
  bool HasStore(size_t s, size_t place, uint64_t store_id) const;
  absl::Status FetchAt(size_t s, const v1::CommitRoundRequest& round);
  // The status of this place, with the job state.
  absl::Status Ask(size_t s, size_t place, v1::ShardStatus* status) const;
  // The shards that are served, and have their replica at this address.
  std::vector<size_t> ReplicasAt(const std::string& address) const;

  // Returns where the replica was before.
  size_t Exchange(size_t s, const Copy& copy);

  ServerCalls* const calls_;
  ThreadPool pool_;                                // Fetch's, which is called once per round
  mutable Mutex mu_;                               // held while a replica takes its shard's place
  std::vector<Copy> copies_ ABSL_GUARDED_BY(mu_);  // by shard
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_REPLICAS_H_
