// Reads the cut of a RowTable while its rows go on changing.
#ifndef KEELSON_CORE_TABLE_ROW_CUT_H_
#define KEELSON_CORE_TABLE_ROW_CUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/table/row_layout.h"
#include "core/table/row_table.h"

namespace keelson {

// One reader of the table's open cut, used by one thread: Collect until it returns false, Sort,
// then Next until it returns 0. Each call takes the time that its arguments allow, so the table's
// lock, which the caller holds during Collect and Next, is free for others between the calls.
// Neither EndCut nor another cut of the table may come between.
class RowCutReader {
 public:
  // `table` has an open cut, and outlives the reader.
  explicit RowCutReader(RowTable* table) : table_(table) {}
  // Only of the rows that had changed since the cut `base`, of which RowTable::ChangesFrom knew.
  RowCutReader(RowTable* table, uint64_t base)
      : table_(table), oldest_(static_cast<uint32_t>(table->generation() - base)) {}
  RowCutReader(const RowCutReader&) = delete;
  RowCutReader& operator=(const RowCutReader&) = delete;

  // With the table's lock: looks at `max_places` (> 0) further rows or freed rows; false: all have
  // been seen.
  bool Collect(size_t max_places);

  // Without the lock.
  void Sort();

  // Rows of the cut, after Sort.
  size_t rows() const { return entries_.size(); }

  // With the table's lock: the next rows of the cut by ascending ids, as they were at the cut, for
  // reading until the lock is released; how many, 0 at the end. RowTable::AgeOf applies to them.
  // RESOURCE_EXHAUSTED: more rows have changed since the cut than images are kept of
  // (RowTable::Options::max_images, or the memory's end), so the cut is incomplete.
  absl::StatusOr<size_t> Next(absl::Span<const RowHeader*> rows);

 private:
  struct Entry {
    uint64_t id;
    uint32_t number;
    bool image;  // the number is that of an undo image
  };

  const RowHeader* RowAtCut(const Entry& entry) const;
  // Of a row as it was at the cut.
  bool Wanted(const RowHeader& row) const { return table_->AgeOf(row) <= oldest_; }

  RowTable* const table_;
  const uint32_t oldest_ = RowHeader::kChanged;  // the age of the rows that are read
  uint64_t next_place_ = 0;
  std::vector<Entry> entries_;
  size_t next_entry_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_CUT_H_
