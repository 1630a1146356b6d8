// The rows of one embedding table in one virtual partition: found, created and erased in batches.
#ifndef KEELSON_CORE_TABLE_ROW_TABLE_H_
#define KEELSON_CORE_TABLE_ROW_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/table/initial_rows.h"
#include "core/table/row_changes.h"
#include "core/table/row_index.h"
#include "core/table/row_layout.h"
#include "core/table/row_memory.h"
#include "core/table/row_slab.h"

namespace keelson {

// Not thread-safe: its owner has a lock, and may use the pointers that it gives while it holds that
// lock and neither erases the row nor compacts. Ids may be any, and come in any order; a batch
// costs least when it is in row order, partition by partition. A batch of more than about 100 rows
// should come in several, so that the rows are still in the cache when the caller gets to them.
//
// An operation moves at most a few thousand small entries, whatever the number of rows, so none
// takes a millisecond; a batch of n rows is n operations.
//
// While a cut is open, the table keeps its rows as they were at the cut beside those that change:
// the first change or erasure of a row copies it to the undo images. RowCutReader reads the cut.
class RowTable {
 public:
  // What all partitions of the table share.
  struct Options {
    const RowLayout* layout = nullptr;
    const InitialRows* initial = nullptr;
    RowMemory* memory = nullptr;
    uint64_t salt = 0;  // TableSalt
    // Of rows; tests have fewer.
    uint64_t max_numbers = RowSlab::kMaxNumbers;
    // Rows of which an open cut keeps images; when more of its rows change, the cut is incomplete.
    uint64_t max_images = RowSlab::kMaxNumbers;
    // RowChanges; tests have fewer.
    size_t most_erased = RowChanges::kMostErased;
  };

  // The options, and what they point to, outlive the table.
  explicit RowTable(const Options* options);
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;
  ~RowTable();

  // For each id its row, or null where it has none; the caller only reads them. `rows` has the size
  // of `ids`, here and below.
  void Find(absl::Span<const uint64_t> ids, absl::Span<const RowHeader*> rows) const;

  // The same for callers that change the rows.
  void FindForChange(absl::Span<const uint64_t> ids, absl::Span<RowHeader*> rows);

  // Creates the rows that are missing, the first `max_new` of them in the order of the ids; the
  // others are refused: null. A new row has the initial values and slots. The caller may change all
  // rows that it gets.
  // RESOURCE_EXHAUSTED: the partition has as many rows as it can number, or there is no memory; the
  // rows that could not be created are null, the others as without the error.
  absl::Status FindOrCreate(absl::Span<const uint64_t> ids, size_t max_new,
                            absl::Span<RowHeader*> rows);

  // Makes rows for ids that are distinct and have none; the caller sets their values, slots and
  // counters. RESOURCE_EXHAUSTED as above; the rows before the first that could not be made are
  // there.
  absl::Status Add(absl::Span<const uint64_t> ids, absl::Span<RowHeader*> rows);
  // Has an empty table take so many rows without looking for room in its index.
  void Reserve(size_t rows) { index_.Reserve(rows); }

  // Erases those of the rows that exist; how many.
  size_t Erase(absl::Span<const uint64_t> ids);

  // Passes the rows among the next `max_places` (> 0) rows or freed rows from *next on to `visit`,
  // which only reads them, and moves *next behind them; 0 is the beginning. False: those were the
  // last ones. A row that is there from the first call to the last is passed once, unless Compact
  // moves it.
  bool Visit(uint64_t* next, size_t max_places,
             absl::FunctionRef<void(const RowHeader&)> visit) const;

  // Rows at places that `random` decides on, any of them as likely as another; how many: fewer than
  // `rows` has room for where places are free. A row may be there twice.
  size_t Sample(uint64_t random, absl::Span<const RowHeader*> rows) const;

  // Moves rows from the end of the memory to free places in front, so that memory which erased rows
  // have left can be given back. Looks at `max_places` rows or freed rows at most: a call takes a
  // microsecond for about 10. False: there is nothing more to move, or a cut is open, whose reader
  // needs the rows where they are.
  bool Compact(size_t max_places);

  size_t rows() const { return slab_.rows(); }
  // Memory, used or not. Undo images come on top of rows and index while a cut is open.
  size_t row_bytes() const { return slab_.bytes(); }
  size_t index_bytes() const { return index_.bytes(); }
  size_t undo_bytes() const;
  // Of erased ids that are remembered.
  size_t erased_bytes() const { return changes_ == nullptr ? 0 : changes_->bytes(); }
  const RowLayout& layout() const { return *options_->layout; }

  // Begins a cut: the rows as they are now, until EndCut. Takes constant time, but when
  // generations have been counted for long in which no cut was read to its end: once in 8000
  // generations it reads all rows.
  // FAILED_PRECONDITION: a cut is open. INVALID_ARGUMENT: `generation` is not above the last one.
  absl::Status StartCut(uint64_t generation);
  // Drops the cut and its undo images, in the time that their number takes; nothing without a cut.
  void EndCut();
  bool cut_open() const { return cut_ != nullptr; }

  // ---- What has changed since an earlier cut (RowChanges). All changes, creations and erasures of
  // rows are counted here.

  // Counts from the newest cut, which has just begun, on; not at all.
  void KeepChanges();
  void StopChanges() { changes_ = nullptr; }
  // The changes from the cut `base` on to the newest one, which has just begun; nothing: they are
  // not known. RowCutReader reads the rows.
  std::optional<ChangesSince> ChangesFrom(uint64_t base) const;
  // What was before the cut `base` is not asked for any more.
  void ForgetChangesBefore(uint64_t base) {
    if (changes_ != nullptr) changes_->ForgetBefore(base);
  }

  // Of the last cut that began; 0 before the first.
  uint64_t generation() const { return generation_; }
  // How many cuts, by their generations, have begun since the row's last change: 0 is changed since
  // the last one. At most kMaxAge. A row with age <= generation() - base has changed since the cut
  // `base` began.
  uint32_t AgeOf(const RowHeader& row) const {
    return static_cast<uint32_t>(generation_ - row.changed()) & RowHeader::kChanged;
  }
  static constexpr uint32_t kMaxAge = RowHeader::kChanged / 2;

 private:
  friend class RowCutReader;
  struct Cut;

  template <typename Row>
  void Search(absl::Span<const uint64_t> ids, size_t prefetch_bytes, Row* rows) const;
  // A row whose values and slots are undefined, and which the index has. Null: neither place nor
  // memory. The id has no row.
  RowHeader* Place(uint64_t id, uint64_t mixed);
  // Finds or makes the row. False: neither place nor memory.
  bool Create(uint64_t id, RowHeader** row);
  absl::Status Exhausted() const;
  // Saves the row for the open cut, if it has not changed since, and marks it as changed.
  void PrepareChange(RowHeader* row) {
    if (AgeOf(*row) != 0) NoteChange(*row);
    row->set_changed(static_cast<uint32_t>(generation_));
  }
  void NoteChange(const RowHeader& row) {
    if (cut_ != nullptr) SaveForCut(row);
    if (changes_ != nullptr) changes_->NoteChange(generation_ - AgeOf(row));
  }
  void SaveForCut(const RowHeader& row);
  // A row that has not changed for longer than kMaxAge, which becomes its age.
  void LimitAge(RowHeader* row) const;

  const Options* const options_;
  RowSlab slab_;
  RowIndex index_;
  uint64_t generation_ = 0;
  // No row is older than kMaxAge and the generations since this one.
  uint64_t limited_generation_ = 0;
  std::unique_ptr<Cut> cut_;
  std::unique_ptr<RowChanges> changes_;  // null: none are counted
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_TABLE_H_
