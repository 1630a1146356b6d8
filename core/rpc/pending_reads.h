// Bounds the calls whose requests have begun and do not end.
#ifndef KEELSON_CORE_RPC_PENDING_READS_H_
#define KEELSON_CORE_RPC_PENDING_READS_H_

#include <cstddef>
#include <functional>
#include <list>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace keelson {

// Of more than `most` reads the oldest is cancelled, so those that end soon are not disturbed by
// those that do not. Where a read holds no thread, many that end soon may be under way at a time:
// then only one that has taken longer than `patience` is cancelled. Thread-safe.
class PendingReads {
 public:
  // `clock` outlives this.
  explicit PendingReads(size_t most, absl::Duration patience = absl::ZeroDuration(),
                        const Clock* clock = Clock::Real())
      : most_(most), patience_(patience), clock_(clock) {}

  // A read, from construction to destruction.
  class Scope {
   public:
    // `cancel` makes the read end soon; it must not block, nor end the scope itself.
    Scope(PendingReads* reads, std::function<void()> cancel);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PendingReads* const reads_;
    const absl::Duration begun_;
    std::list<Scope*>::iterator place_;
    const std::function<void()> cancel_;
    friend class PendingReads;
  };

 private:
  // The oldest is to give way.
  bool TooMany() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t most_;
  const absl::Duration patience_;
  const Clock* const clock_;

  Mutex mu_;
  // The oldest first; without those that were cancelled.
  std::list<Scope*> reads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_PENDING_READS_H_
