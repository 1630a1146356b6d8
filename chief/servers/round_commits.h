// The rounds of synchronous mode, as the chief has the parameter servers commit them.
#ifndef KEELSON_CHIEF_SERVERS_ROUND_COMMITS_H_
#define KEELSON_CHIEF_SERVERS_ROUND_COMMITS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/servers/replicas.h"
#include "chief/servers/round_gate.h"
#include "chief/servers/server_calls.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread_pool.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Thread-safe; one round is committed at a time. Errors of a server begin with its name. ABORTED:
// the server obeys another chief.
class RoundCommits {
 public:
  // See CommitRoundRequest.
  struct Round {
    int64_t step = 0;
    uint32_t attempt = 0;
    uint32_t contributions = 0;
  };

  // All outlive this.
  RoundCommits(ServerCalls* calls, Replicas* replicas, const Clock* clock);

  // Commits a round whose pushes were all acknowledged by all servers, at the replicas too. Servers
  // whose shards were made or cut since, or that are leaving, are asked and commit first: as long
  // as no server has committed the round it can be begun again, and shards may move or be cut while
  // one that does not answer is waited for. Failed calls are repeated until the server answers, or
  // `stop` is raised. OK: committed. A server that was restarted unnoticed has
  // lost this step with those before it; that is logged. FAILED_PRECONDITION: a server lacks
  // pushes, and none has committed the round. CANCELLED: stopped. ABORTED: another chief.
  // `committed` is called once, by any thread, when the first server has committed it: the step
  // counts from then on, while the others follow before a cut can be prepared. It may have been
  // called before an error, too; then Commit is to be called again with the same round.
  absl::Status Commit(
      const Round& round, const StopSignal& stop, absl::FunctionRef<void()> committed = [] {});
  // Commits a round at one server, trying for at most `patience` (on the clock).
  // FAILED_PRECONDITION: the server does not have the pushes. UNAVAILABLE, DEADLINE_EXCEEDED: no
  // answer.
  absl::Status CommitAt(size_t s, const Round& round, absl::Duration patience,
                        const StopSignal& stop);
  // The shard's replica has taken its place: commits the round there that Commit is committing at
  // the shard, if there is one. Its call of the place before may not have ended, and a push of a
  // later round and attempt would take the sums away. Call before workers are told of the place.
  void CommitWhereMoved(size_t s);
  // Tells a server that the round is committed and that it has lost its pushes; logs `why`.
  // Otherwise as CommitAt.
  absl::Status LoseAt(size_t s, const Round& round, absl::string_view why, absl::Duration patience,
                      const StopSignal& stop);

  // Rounds up to this one are committed.
  void NoteCommitted(int64_t round);
  // The newest one; -1: none.
  int64_t committed() const { return committed_; }

  // RoundGate::WithoutRounds: calls `cut` while no round is being committed.
  template <typename Cut>
  absl::Status WithoutRounds(absl::Duration patience, Cut cut) {
    return gate_.WithoutRounds(patience, std::move(cut));
  }

 private:
  // The servers that may lack pushes of the round under way, which commit first, and the others.
  using Order = std::pair<std::vector<size_t>, std::vector<size_t>>;

  // Has the replicas fetch the round, and asks the servers that may lack pushes, once, before it is
  // committed anywhere. FAILED_PRECONDITION: a shard lacks pushes. UNAVAILABLE, DEADLINE_EXCEEDED:
  // a host does not answer, or takes nothing any more, as it leaves.
  absl::StatusOr<Order> Ready(const Round& round, const StopSignal& stop);
  // Has all servers commit a round that is ready.
  absl::Status CommitEverywhere(const Order& order, const Round& round, const StopSignal& stop,
                                absl::FunctionRef<void()> committed);
  // Commits the round where the shard is served, and at its replica.
  absl::Status CommitWhereServed(size_t s, const v1::CommitRoundRequest& request,
                                 const StopSignal& stop);
  void SetUnderWay(size_t s, const std::optional<v1::CommitRoundRequest>& request);
  absl::Status Call(size_t s, const v1::CommitRoundRequest& request, absl::Duration patience,
                    const StopSignal& stop);
  v1::CommitRoundRequest RequestOf(const Round& round) const;
  Order Doubtful() const;
  // Has these servers commit the round, or say whether they would, side by side. Returns their
  // answers in the same order; those that are only asked are asked once.
  // `committed` is called for each that commits it, by any thread.
  std::vector<absl::Status> CommitAtEach(const std::vector<size_t>& at, const Round& round,
                                         bool only_ask, const StopSignal& stop,
                                         absl::FunctionRef<void()> committed);

  ServerCalls* const calls_;
  Replicas* const replicas_;
  const Clock* const clock_;
  std::atomic<int64_t> committed_{-1};
  Mutex under_way_mu_;
  // By shard: the commit of CommitWhereServed.
  std::vector<std::optional<v1::CommitRoundRequest>> under_way_ ABSL_GUARDED_BY(under_way_mu_);
  RoundGate gate_;
  Mutex mu_;
  ThreadPool pool_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_ROUND_COMMITS_H_
