// A RowTable with what it needs, for tests.
#ifndef KEELSON_CORE_TABLE_ROW_TABLE_TESTING_H_
#define KEELSON_CORE_TABLE_ROW_TABLE_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/table/initial_rows.h"
#include "core/table/row_changes.h"
#include "core/table/row_id.h"
#include "core/table/row_layout.h"
#include "core/table/row_memory.h"
#include "core/table/row_slab.h"
#include "core/table/row_table.h"
#include "gtest/gtest.h"

namespace keelson {

// `count` ids from `first` on.
inline std::vector<uint64_t> IdsFrom(uint64_t first, size_t count) {
  std::vector<uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

struct TableForTest {
  static constexpr int64_t kDim = 3;

  explicit TableForTest(uint64_t max_numbers = RowSlab::kMaxNumbers,
                        uint64_t max_images = RowSlab::kMaxNumbers,
                        size_t most_erased = RowChanges::kMostErased)
      : options{&layout, &initial, &memory, TableSalt("t"), max_numbers, max_images, most_erased} {}

  std::vector<const RowHeader*> Find(const std::vector<uint64_t>& ids) const {
    std::vector<const RowHeader*> rows(ids.size());
    table.Find(ids, absl::MakeSpan(rows));
    return rows;
  }
  std::vector<RowHeader*> FindForChange(const std::vector<uint64_t>& ids) {
    std::vector<RowHeader*> rows(ids.size());
    table.FindForChange(ids, absl::MakeSpan(rows));
    return rows;
  }
  std::vector<RowHeader*> Create(const std::vector<uint64_t>& ids) {
    std::vector<RowHeader*> rows(ids.size());
    EXPECT_TRUE(table.FindOrCreate(ids, ids.size(), absl::MakeSpan(rows)).ok());
    return rows;
  }

  RowMemory memory;
  RowLayout layout = *RowLayout::Create(kDim, {{kDim, 0.5f}, {1, -1.0f}});
  InitialRows initial{{Initializer::Kind::kUniform, -1, 1}, /*seed=*/5, TableSalt("t")};
  RowTable::Options options;
  RowTable table{&options};
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_TABLE_TESTING_H_
