#include "core/table/row_cut.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/table/row_table_cut.h"

namespace keelson {

// A row of the cut has either not changed before it is seen here, or is then among the images, and
// so is one that was erased. Rows that were created since the cut have changed and have no image.
bool RowCutReader::Collect(size_t max_places) {
  const auto collect = [&](uint32_t number, RowHeader* row) {
    table_->LimitAge(row);
    if (table_->AgeOf(*row) != 0 && Wanted(*row)) entries_.push_back({row->id, number});
  };
  if (table_->slab_.VisitLive(&next_place_, max_places, collect)) return true;
  table_->limited_generation_ = table_->generation();
  uint64_t next = 0;
  table_->cut_->images.VisitLive(&next, RowSlab::kMaxNumbers, [&](uint32_t, const RowHeader* row) {
    if (Wanted(*row)) entries_.push_back({row->id, RowSlab::kNoRow});
  });
  return false;
}

void RowCutReader::Sort() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.id != b.id ? a.id < b.id : a.number < b.number;
  });
  // A row that changed after it was seen is there twice; Next finds its image by either.
  const auto same = [](const Entry& a, const Entry& b) { return a.id == b.id; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

absl::StatusOr<size_t> RowCutReader::Next(absl::Span<const RowHeader*> rows) {
  const RowTable::Cut& cut = *table_->cut_;
  if (cut.incomplete) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a table's cut is incomplete: more rows have changed since than the ",
                     cut.images.rows(), " for which there was room"));
  }
  const RowSlab& slab = table_->slab_;
  constexpr size_t kAhead = 16;
  const size_t count = std::min(rows.size(), entries_.size() - next_entry_);
  for (size_t i = 0; i < count; ++i) {
    const Entry& entry = entries_[next_entry_ + i];
    if (next_entry_ + i + kAhead < entries_.size()) {
      __builtin_prefetch(slab.LiveRow(entries_[next_entry_ + i + kAhead].number));
    }
    const RowHeader* row = slab.LiveRow(entry.number);
    if (row == nullptr || row->id != entry.id || table_->AgeOf(*row) == 0) {
      row = cut.images.Row(cut.index.Find(entry.id, cut.index.Mix(entry.id)));
    }
    rows[i] = row;
  }
  next_entry_ += count;
  return count;
}

}  // namespace keelson
