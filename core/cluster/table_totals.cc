#include "core/cluster/table_totals.h"

#include <algorithm>

namespace keelson {

void TableTotals::AddShard(const TablePartStatuses& tables) {
  for (const v1::TablePartStatus& table : tables) {
    auto sum = std::find_if(sums_.begin(), sums_.end(),
                            [&](const Sum& known) { return known.total.name == table.name(); });
    if (sum == sums_.end()) {
      sum = sums_.insert(sum, Sum());
      sum->total.name = table.name();
    }
    sum->total.rows += table.rows();
    sum->total.bytes += table.bytes();
    sum->total.refused_rows += table.refused_rows();
    sum->largest = std::max(sum->largest, table.rows());
    ++sum->shards;
  }
}

std::vector<TableTotal> TableTotals::totals() const {
  std::vector<TableTotal> totals;
  for (const Sum& sum : sums_) {
    TableTotal& total = totals.emplace_back(sum.total);
    if (total.rows <= 0) continue;
    total.balance = static_cast<double>(sum.largest) * static_cast<double>(sum.shards) /
                    static_cast<double>(total.rows);
  }
  return totals;
}

}  // namespace keelson
