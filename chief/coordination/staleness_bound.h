// Stale synchronous parallel: how far each worker may run ahead of the slowest.
// Source: Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter
// Server", NIPS 2013.
//
// A worker's clock counts its completed tickets. With a bound of s, a worker may be granted tickets
// until it has s + 1 more than the slowest worker has completed: s = 0 is lockstep. A worker that
// has not yet asked for work (Join) is not waited for.
//
// A pure state machine: no threads, no I/O, no time. Not thread-safe.
#ifndef KEELSON_CHIEF_COORDINATION_STALENESS_BOUND_H_
#define KEELSON_CHIEF_COORDINATION_STALENESS_BOUND_H_

#include <cstdint>
#include <map>

namespace keelson {

class StalenessBound {
 public:
  // `staleness` >= 0.
  explicit StalenessBound(int64_t staleness) : staleness_(staleness) {}

  // A worker asks for work for the first time, with `outstanding` tickets that it holds already.
  // Its clock starts at the slowest worker's. A no-op for one that is known.
  void Join(uint64_t worker, int64_t outstanding);
  // The others no longer wait for it.
  void Leave(uint64_t worker) { clocks_.erase(worker); }

  // Tickets that a worker that has joined may be granted now.
  int64_t Allowance(uint64_t worker) const;
  void Granted(uint64_t worker, int64_t tickets);
  // A no-op for a worker that has not joined.
  void Completed(uint64_t worker, int64_t tickets);

 private:
  struct Clock {
    int64_t granted = 0;
    int64_t completed = 0;
  };

  int64_t SlowestClock() const;

  int64_t staleness_;
  std::map<uint64_t, Clock> clocks_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_STALENESS_BOUND_H_
