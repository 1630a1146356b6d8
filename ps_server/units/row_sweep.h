// Finds the rows of tables that have expired, and erases them, a little after each push.
#ifndef KEELSON_PS_SERVER_UNITS_ROW_SWEEP_H_
#define KEELSON_PS_SERVER_UNITS_ROW_SWEEP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ps_server/units/table_partition.h"

namespace keelson {

// A pass goes through all rows that a shard has of a table, partition by partition, in a quarter of
// the steps after which they expire; the next one begins that many steps after it. So at most about
// a quarter of the rows are expired ones that still take memory. Rows whose memory has become free
// in a partition are moved together behind the pass.
//
// The steps give the pace, and pushes do the work, so a server without pushes has none to do. What
// a push does is bounded: a pass whose table is large, for its few steps, takes longer.
//
// Thread-safe; what is due is done by one thread, while others have nothing to do.
class RowSweep {
 public:
  using Partitions = std::vector<std::unique_ptr<TablePartition>>;

  // Places that a push looks at, at most: the larger of this, and these for each of its ids, so
  // that rows are not made faster than they are swept.
  static constexpr int64_t kMostPlaces = 16 * 1024;
  static constexpr int64_t kPlacesForId = 4;

  // Both outlive this, and are complete when Go is first called.
  RowSweep(const std::vector<ServedTable>* tables, const Partitions* partitions)
      : tables_(*tables), partitions_(*partitions) {}

  // Does what is due, after a push of `ids` rows. `clock` is the newest step that has begun. Call
  // it in a ShardStore::PushScope.
  void Go(int64_t clock, size_t ids);

 private:
  struct Pass {
    bool under_way = false;
    int64_t began = 0;  // the clock then
    int64_t rows = 0;   // that there were
    int64_t seen = 0;
    size_t partition = 0;
    uint64_t next = 0;  // TablePartition::Sweep
    bool compacting = false;
  };

  // `places` is what may be looked at yet.
  void GoOn(size_t table, int64_t clock, int64_t* places);
  void Step(size_t table, int64_t clock, Pass* pass, int64_t* places);

  const std::vector<ServedTable>& tables_;
  const Partitions& partitions_;
  // Who has set it uses what follows.
  std::atomic<bool> busy_{false};
  std::vector<Pass> passes_;  // by table
  size_t first_ = 0;          // the table whose turn it is to be served first
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_ROW_SWEEP_H_
