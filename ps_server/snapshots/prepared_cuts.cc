#include "ps_server/snapshots/prepared_cuts.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {

StoreCut CutNow(std::shared_ptr<ShardStore> store, const Clock* clock, const CutChanges& changes) {
  const absl::Duration start = clock->Monotonic();
  ShardCut cut = store->Cut(changes);
  return {std::move(store), std::move(cut), clock->Monotonic() - start};
}

void PreparedCuts::Keep(uint64_t chief, uint64_t id, StoreCut cut) {
  std::optional<Kept> dropped = Kept{chief, id, clock_->Monotonic() + lifetime_, std::move(cut)};
  MutexLock lock(&mu_);
  std::swap(kept_, dropped);
  any_ = true;
}

absl::StatusOr<StoreCut> PreparedCuts::Take(uint64_t chief, uint64_t id) {
  DropExpired();
  MutexLock lock(&mu_);
  if (!kept_.has_value() || kept_->chief != chief || kept_->id != id) {
    return absl::UnavailableError(
        absl::StrCat("cut ", id, " is not there: it was dropped, or another call has it"));
  }
  StoreCut cut = std::move(kept_->cut);
  kept_.reset();
  any_ = false;
  return cut;
}

void PreparedCuts::DropIf(absl::FunctionRef<bool(const Kept&)> is_over) {
  if (!any_) return;
  std::optional<Kept> dropped;  // destroyed without the lock
  MutexLock lock(&mu_);
  if (!kept_.has_value() || !is_over(*kept_)) return;
  std::swap(kept_, dropped);
  any_ = false;
}

void PreparedCuts::Drop() {
  DropIf([](const Kept&) { return true; });
}

void PreparedCuts::DropOthers(uint64_t chief) {
  DropIf([chief](const Kept& kept) { return kept.chief != chief; });
}

void PreparedCuts::DropExpired() {
  DropIf([this](const Kept& kept) { return clock_->Monotonic() >= kept.until; });
}

}  // namespace keelson
