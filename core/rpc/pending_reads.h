// Bounds the calls whose requests have begun and do not end.
#ifndef KEELSON_CORE_RPC_PENDING_READS_H_
#define KEELSON_CORE_RPC_PENDING_READS_H_

#include <cstddef>
#include <functional>
#include <list>

#include "core/base/mutex.h"

namespace keelson {

// Of more than `most` reads the oldest is cancelled, so those that end soon are not disturbed by
// those that do not. Thread-safe.
class PendingReads {
 public:
  explicit PendingReads(size_t most) : most_(most) {}

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
    std::list<Scope*>::iterator place_;
    const std::function<void()> cancel_;
    friend class PendingReads;
  };

 private:
  const size_t most_;

  Mutex mu_;
  // The oldest first; without those that were cancelled.
  std::list<Scope*> reads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_PENDING_READS_H_
