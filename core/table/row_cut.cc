#include "core/table/row_cut.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/radix_sort.h"
#include "core/table/row_prefetch.h"
#include "core/table/row_table_cut.h"

namespace keelson {

// A row of the cut has either not changed before it is seen here, or is then among the images, and
// so is one that was erased. Rows that were created since the cut have changed and have no image.
bool RowCutReader::Collect(size_t max_places) {
  if (next_place_ == 0 && oldest_ == RowHeader::kChanged) entries_.reserve(table_->rows());
  const auto collect = [&](uint32_t number, RowHeader* row) {
    table_->LimitAge(row);
    if (table_->AgeOf(*row) != 0 && Wanted(*row))
      entries_.push_back({row->id, number, /*image=*/false});
  };
  if (table_->slab_.VisitLive(&next_place_, max_places, collect)) return true;
  table_->limited_generation_ = table_->generation();
  uint64_t next = 0;
  table_->cut_->images.VisitLive(&next, RowSlab::kMaxNumbers,
                                 [&](uint32_t number, const RowHeader* row) {
                                   if (!Wanted(*row)) return;
                                   entries_.push_back({row->id, number, /*image=*/true});
                                 });
  return false;
}

// The sort keeps the order of what has the same id, so that a row comes before its image.
void RowCutReader::Sort() {
  uint64_t differing = 0;
  for (const Entry& entry : entries_) differing |= entry.id ^ entries_.front().id;
  std::vector<Entry> other;
  RadixSort(
      differing, [](const Entry& entry) { return entry.id; }, &entries_, &other);
  // A row that changed after it was seen is there twice; Next finds its image.
  const auto same = [](const Entry& a, const Entry& b) { return a.id == b.id; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

const RowHeader* RowCutReader::RowAtCut(const Entry& entry) const {
  const RowTable::Cut& cut = *table_->cut_;
  if (entry.image) return cut.images.Row(entry.number);
  const RowHeader* const row = table_->slab_.LiveRow(entry.number);
  if (row != nullptr && row->id == entry.id && table_->AgeOf(*row) != 0) return row;
  return cut.images.Row(cut.image_of.Of(entry.number));
}

absl::StatusOr<size_t> RowCutReader::Next(absl::Span<const RowHeader*> rows) {
  const RowTable::Cut& cut = *table_->cut_;
  if (cut.incomplete) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a table's cut is incomplete: more rows have changed since than the ",
                     cut.images.rows(), " for which there was room"));
  }
  const size_t stride = table_->layout().stride();
  constexpr size_t kAhead = 16;
  const size_t count = std::min(rows.size(), entries_.size() - next_entry_);
  for (size_t i = 0; i < count; ++i) {
    if (next_entry_ + i + kAhead < entries_.size()) {
      const Entry& ahead = entries_[next_entry_ + i + kAhead];
      PrefetchRow((ahead.image ? cut.images : table_->slab_).RowOrNull(ahead.number), stride);
    }
    rows[i] = RowAtCut(entries_[next_entry_ + i]);
  }
  next_entry_ += count;
  return count;
}

}  // namespace keelson
