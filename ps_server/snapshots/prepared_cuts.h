// Cuts that a chief has had taken, and that wait to be written.
#ifndef KEELSON_PS_SERVER_SNAPSHOTS_PREPARED_CUTS_H_
#define KEELSON_PS_SERVER_SNAPSHOTS_PREPARED_CUTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// A cut with the store that it is of, which it keeps alive.
struct StoreCut {
  std::shared_ptr<ShardStore> store;
  ShardCut cut;
  absl::Duration time;  // that pushes were kept waiting
};

// Takes a cut. `clock` measures it.
StoreCut CutNow(std::shared_ptr<ShardStore> store, const Clock* clock,
                const CutChanges& changes = {});

// Keeps at most one cut: while it is there, pushes copy the blocks that they change. Thread-safe.
class PreparedCuts {
 public:
  // A cut is kept for `lifetime` unless it is taken; `clock` outlives this.
  explicit PreparedCuts(const Clock* clock, absl::Duration lifetime = absl::Minutes(1))
      : clock_(clock), lifetime_(lifetime) {}

  // Keeps the cut `id` of this chief. Drops the one before.
  void Keep(uint64_t chief, uint64_t id, StoreCut cut);

  // Hands the cut out, once. UNAVAILABLE: it is not there.
  absl::StatusOr<StoreCut> Take(uint64_t chief, uint64_t id);

  // Drops the cut, whosever it is; one of another chief; one whose time has passed.
  void Drop();
  void DropOthers(uint64_t chief);
  void DropExpired();

 private:
  struct Kept {
    uint64_t chief = 0;
    uint64_t id = 0;
    absl::Duration until;
    StoreCut cut;
  };

  void DropIf(absl::FunctionRef<bool(const Kept&)> is_over);

  const Clock* const clock_;
  const absl::Duration lifetime_;

  // Whether there is one; read without the lock by the calls that find none.
  std::atomic<bool> any_{false};
  Mutex mu_;
  std::optional<Kept> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SNAPSHOTS_PREPARED_CUTS_H_
