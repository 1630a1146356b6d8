#include "ps_server/units/row_sweep.h"

#include <algorithm>
#include <limits>

namespace keelson {
namespace {

constexpr int64_t kPassesUntilExpiry = 4;
// What taking a partition's lock costs, in places that are looked at.
constexpr int64_t kPlacesForLock = 64;

}  // namespace

void RowSweep::Go(int64_t clock, size_t ids) {
  if (busy_.exchange(true, std::memory_order_acquire)) return;
  passes_.resize(tables_.size());
  int64_t places = std::max(kMostPlaces, kPlacesForId * static_cast<int64_t>(ids));
  for (size_t i = 0; i < tables_.size() && places > 0; ++i) {
    const size_t table = (first_ + i) % tables_.size();
    if (tables_[table].spec.expires()) GoOn(table, clock, &places);
  }
  first_ = (first_ + 1) % tables_.size();
  busy_.store(false, std::memory_order_release);
}

void RowSweep::GoOn(size_t table, int64_t clock, int64_t* places) {
  Pass& pass = passes_[table];
  const int64_t steps =
      std::max<int64_t>(1, tables_[table].spec.expire_after_steps / kPassesUntilExpiry);
  if (!pass.under_way) {
    if (clock - pass.began < steps) return;
    pass = {/*under_way=*/true, clock};
    for (const auto& partition : partitions_) pass.rows += partition->rows(table);
  }
  const int64_t since = clock - pass.began + 1;
  const auto due = since >= steps ? std::numeric_limits<double>::infinity()
                                  : static_cast<double>(pass.rows) * static_cast<double>(since) /
                                        static_cast<double>(steps);
  while (pass.under_way && static_cast<double>(pass.seen) < due && *places > 0) {
    Step(table, clock, &pass, places);
  }
}

void RowSweep::Step(size_t table, int64_t clock, Pass* pass, int64_t* places) {
  TablePartition& partition = *partitions_[pass->partition];
  *places -= kPlacesForLock;
  if (!pass->compacting) {
    const int64_t before = pass->seen;
    pass->compacting = !partition.Sweep(table, clock, &pass->next, &pass->seen);
    *places -= pass->seen - before;
    return;
  }
  if (partition.Compact(table)) {
    *places -= static_cast<int64_t>(TablePartition::kSweptPlaces);
    return;
  }
  pass->compacting = false;
  pass->next = 0;
  pass->under_way = ++pass->partition < partitions_.size();
}

}  // namespace keelson
