// What each worker asked for last and was given: so that a request that comes again gets the same
// lease, and that the size of a lease follows the worker's speed.
#ifndef KEELSON_CHIEF_COORDINATION_WORK_REQUESTS_H_
#define KEELSON_CHIEF_COORDINATION_WORK_REQUESTS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "chief/coordination/work_ledger.h"

namespace keelson {

// Requests of an incarnation have sequence numbers that rise; 0: the request has none, and is never
// taken for a repetition. A pure state machine: time is given. Not thread-safe.
class WorkRequests {
 public:
  struct Options {
    // A lease is for about this long at the worker's newest speed.
    absl::Duration work_per_lease;
    int64_t max_tickets_per_lease = 0;
  };

  explicit WorkRequests(const Options& options) : options_(options) {}

  // Whether this request, or a newer one, has come before.
  bool Came(uint64_t incarnation, uint64_t sequence) const;
  // The request has come. Whether it is the newest, so that older ones are to end.
  bool Note(uint64_t incarnation, uint64_t sequence);
  // Whether a newer request has come.
  bool Overtaken(uint64_t incarnation, uint64_t sequence) const;

  // Calls that wait for the answers to this incarnation's requests.
  void BeginWait(uint64_t incarnation) { ++requests_[incarnation].waiting; }
  void EndWait(uint64_t incarnation);
  bool AnyWaits(uint64_t incarnation) const;

  // The number of tickets of the next lease, at least 1, when `left` steps are to be done in all.
  int64_t TicketsFor(uint64_t incarnation, int64_t left, absl::Duration now) const;
  // The request is answered with this lease at `now`.
  void Grant(uint64_t incarnation, uint64_t sequence, const WorkLease& lease, absl::Duration now);
  // The lease with which the request was answered, or nothing.
  std::optional<WorkLease> Granted(uint64_t incarnation, uint64_t sequence) const;

  // The membership is over.
  void Forget(uint64_t incarnation);

 private:
  // The size and time of a worker's newest lease, from which the size of its next one follows.
  struct Pace {
    absl::Duration granted_at;
    int64_t tickets = 0;
  };
  // The newest request of an incarnation, and the lease that answered request `granted`.
  struct Requests {
    uint64_t newest = 0;
    uint64_t granted = 0;
    std::optional<WorkLease> lease;
    int waiting = 0;  // calls
  };

  const Requests* Find(uint64_t incarnation) const;

  const Options options_;
  std::map<uint64_t, Pace> paces_;  // of the incarnations that were given work
  std::map<uint64_t, Requests> requests_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_WORK_REQUESTS_H_
