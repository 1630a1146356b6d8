// What all shards have of each table.
#ifndef KEELSON_CORE_CLUSTER_TABLE_TOTALS_H_
#define KEELSON_CORE_CLUSTER_TABLE_TOTALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "keelson/v1/cluster.pb.h"

namespace keelson {

struct TableTotal {
  // The sums; of the hottest ids those of all shards.
  v1::TablePartStatus table;
  // The rows of the shard with the most of them, over the mean of the shards: 1 where all have
  // equally many, or none has any.
  double balance = 1;
};

using TablePartStatuses = google::protobuf::RepeatedPtrField<v1::TablePartStatus>;

// Adds up what shards say. One thread.
class TableTotals {
 public:
  // A shard without tables, as one that is empty, counts for nothing.
  void AddShard(const TablePartStatuses& tables);

  // In the order of the placement's tables; of each kMostHot of its hottest ids.
  static constexpr int kMostHot = 10;
  std::vector<TableTotal> totals() const;

 private:
  struct Sum {
    TableTotal total;
    int64_t largest = 0;  // rows
    int64_t shards = 0;
  };

  std::vector<Sum> sums_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_TABLE_TOTALS_H_
