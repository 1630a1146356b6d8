#include "core/table/row_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/table/row_prefetch.h"
#include "core/table/row_table_cut.h"

namespace keelson {
namespace {

// Ids whose cache lines are on their way at a time.
constexpr size_t kInFlight = 32;

}  // namespace

RowTable::RowTable(const Options* options)
    : options_(options),
      slab_(options->memory, options->layout->stride(), options->max_numbers),
      index_(options->memory, &slab_, options->salt) {}

RowTable::~RowTable() = default;

// Three passes over kInFlight ids, each of which asks for the cache lines that the next one reads:
// the group of the index, the row, and whether it is the id's.
template <typename Row>
void RowTable::Search(absl::Span<const uint64_t> ids, size_t prefetch_bytes, Row* rows) const {
  std::array<uint64_t, kInFlight> mixed;
  std::array<const RowIndex::Group*, kInFlight> groups;
  for (size_t first = 0; first < ids.size(); first += kInFlight) {
    const size_t count = std::min(kInFlight, ids.size() - first);
    for (size_t i = 0; i < count; ++i) {
      mixed[i] = index_.Mix(ids[first + i]);
      groups[i] = index_.FirstGroup(mixed[i]);
      __builtin_prefetch(groups[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      rows[first + i] = nullptr;
      if (groups[i] == nullptr) continue;
      const uint32_t matches = RowIndex::Matches(*groups[i], RowIndex::TagOf(mixed[i]));
      if (matches == 0) {
        // Most searches that go on end in the next group.
        if (groups[i]->overflow > 0) __builtin_prefetch(groups[i] + 1);
        continue;
      }
      rows[first + i] = slab_.Row(groups[i]->rows[std::countr_zero(matches)]);
      PrefetchRow(rows[first + i], prefetch_bytes);
    }
    for (size_t i = 0; i < count; ++i) {
      Row& row = rows[first + i];
      if (row != nullptr && row->id == ids[first + i]) continue;
      if (row == nullptr && (groups[i] == nullptr || groups[i]->overflow == 0)) continue;
      const uint32_t number = index_.Find(ids[first + i], mixed[i]);
      row = number == RowSlab::kNoRow ? nullptr : slab_.Row(number);
      if (row != nullptr) PrefetchRow(row, prefetch_bytes);
    }
  }
}

void RowTable::Find(absl::Span<const uint64_t> ids, absl::Span<const RowHeader*> rows) const {
  const size_t bytes = sizeof(RowHeader) + static_cast<size_t>(layout().dim()) * sizeof(float);
  Search(ids, bytes, rows.data());
}

void RowTable::FindForChange(absl::Span<const uint64_t> ids, absl::Span<RowHeader*> rows) {
  Search(ids, layout().stride(), rows.data());
  for (RowHeader* const row : rows.first(ids.size())) {
    if (row != nullptr) PrepareChange(row);
  }
}

absl::Status RowTable::FindOrCreate(absl::Span<const uint64_t> ids, size_t max_new,
                                    absl::Span<RowHeader*> rows) {
  FindForChange(ids, rows);
  bool exhausted = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (rows[i] != nullptr || max_new == 0) continue;
    if (Create(ids[i], &rows[i])) {
      --max_new;
    } else {
      exhausted = true;
    }
  }
  return exhausted ? Exhausted() : absl::OkStatus();
}

absl::Status RowTable::Exhausted() const {
  return absl::ResourceExhaustedError(
      slab_.full() ? absl::StrCat("a table's partition has no numbers for more than its ",
                                  slab_.rows(), " rows")
                   : absl::StrCat("no memory for a row beyond the ", slab_.rows(),
                                  " of a table's partition"));
}

RowHeader* RowTable::Place(uint64_t id, uint64_t mixed) {
  const uint32_t number = slab_.Allocate();
  if (number == RowSlab::kNoRow) return nullptr;
  RowHeader* const row = slab_.Row(number);
  *row = {id, /*last_step=*/0, /*updates=*/0, RowHeader::kLive};
  row->set_changed(static_cast<uint32_t>(generation_));
  if (!index_.Insert(mixed, number)) {
    slab_.Free(number);
    return nullptr;
  }
  if (changes_ != nullptr) changes_->NoteNew(id);
  return row;
}

bool RowTable::Create(uint64_t id, RowHeader** row) {
  const uint64_t mixed = index_.Mix(id);
  // An id may be twice in a batch.
  const uint32_t number = index_.Find(id, mixed);
  if (number != RowSlab::kNoRow) {
    *row = slab_.Row(number);
    return true;
  }
  RowHeader* const created = Place(id, mixed);
  if (created == nullptr) return false;
  options_->initial->Fill(id,
                          absl::MakeSpan(created->values(), static_cast<size_t>(layout().dim())));
  layout().FillSlots(created->values());
  *row = created;
  return true;
}

absl::Status RowTable::Add(absl::Span<const uint64_t> ids, absl::Span<RowHeader*> rows) {
  std::array<uint64_t, kInFlight> mixed;
  for (size_t first = 0; first < ids.size(); first += kInFlight) {
    const size_t count = std::min(kInFlight, ids.size() - first);
    for (size_t i = 0; i < count; ++i) {
      mixed[i] = index_.Mix(ids[first + i]);
      __builtin_prefetch(index_.FirstGroup(mixed[i]), /*rw=*/1);
    }
    for (size_t i = 0; i < count; ++i) {
      rows[first + i] = Place(ids[first + i], mixed[i]);
      if (rows[first + i] == nullptr) return Exhausted();
    }
  }
  return absl::OkStatus();
}

size_t RowTable::Erase(absl::Span<const uint64_t> ids) {
  size_t erased = 0;
  std::array<RowHeader*, kInFlight> rows;
  for (size_t first = 0; first < ids.size(); first += kInFlight) {
    const auto some = ids.subspan(first, kInFlight);
    FindForChange(some, absl::MakeSpan(rows));
    for (size_t i = 0; i < some.size(); ++i) {
      if (rows[i] == nullptr) continue;
      const uint64_t mixed = index_.Mix(some[i]);
      const uint32_t number = index_.Find(some[i], mixed);
      if (number == RowSlab::kNoRow) continue;  // it is twice in the batch
      index_.Erase(mixed, number);
      slab_.Free(number);
      if (changes_ != nullptr) changes_->NoteErased(some[i]);
      ++erased;
    }
  }
  return erased;
}

bool RowTable::Visit(uint64_t* next, size_t max_places,
                     absl::FunctionRef<void(const RowHeader&)> visit) const {
  return slab_.VisitLive(next, max_places, [&](uint32_t, const RowHeader* row) { visit(*row); });
}

size_t RowTable::Sample(uint64_t random, absl::Span<const RowHeader*> rows) const {
  const uint64_t end = slab_.end();
  if (end == 0) return 0;
  size_t n = 0;
  // Twice, for some places may be free; all at a time, for each of them is a line to wait for.
  for (int draw = 0; draw < 2; ++draw) {
    for (size_t i = n; i < rows.size(); ++i) {
      random = MixId(random, options_->salt + i);
      rows[i] = slab_.RowOrNull(static_cast<uint32_t>((random >> 32) * end >> 32));
      __builtin_prefetch(rows[i]);
    }
    for (size_t i = n; i < rows.size(); ++i) {
      if (rows[i] != nullptr && rows[i]->live()) rows[n++] = rows[i];
    }
  }
  return n;
}

bool RowTable::Compact(size_t max_places) {
  if (cut_open()) return false;
  while (max_places > 0) {
    const uint32_t number = slab_.HighestToMove(&max_places);
    if (number == RowSlab::kNoRow) return max_places == 0;
    const uint32_t place = slab_.Allocate();
    const RowHeader* const row = slab_.Row(number);
    std::memcpy(static_cast<void*>(slab_.Row(place)), row, layout().stride());
    index_.Replace(index_.Mix(row->id), number, place);
    slab_.Free(number);
  }
  return true;
}

size_t RowTable::undo_bytes() const { return cut_ == nullptr ? 0 : cut_->bytes(); }

absl::Status RowTable::StartCut(uint64_t generation) {
  if (cut_open()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a table's cut ", generation, " cannot begin: cut ", generation_, " has not ended"));
  }
  if (generation <= generation_) {
    return absl::InvalidArgumentError(absl::StrCat("a table's cut: expected a generation above ",
                                                   generation_, ", found ", generation));
  }
  if (generation - limited_generation_ > kMaxAge) {
    uint64_t next = 0;
    const auto limit = [&](uint32_t, RowHeader* row) {
      const uint64_t age = std::min<uint64_t>(AgeOf(*row) + (generation - generation_), kMaxAge);
      row->set_changed(static_cast<uint32_t>(generation - age));
    };
    slab_.VisitLive(&next, slab_.rows() + RowSlab::kMaxNumbers, limit);
    limited_generation_ = generation;
  }
  generation_ = generation;
  if (changes_ != nullptr) changes_->StartCut(generation);
  cut_ = std::make_unique<Cut>(*options_);
  return absl::OkStatus();
}

void RowTable::KeepChanges() {
  changes_ = std::make_unique<RowChanges>(generation_, options_->most_erased);
}

// The age of a row that has not changed for longer than kMaxAge is not known.
std::optional<ChangesSince> RowTable::ChangesFrom(uint64_t base) const {
  if (changes_ == nullptr || base > generation_ || generation_ - base >= kMaxAge) {
    return std::nullopt;
  }
  return changes_->Since(base);
}

void RowTable::EndCut() { cut_.reset(); }

void RowTable::SaveForCut(const RowHeader& row) {
  const uint32_t image = cut_->images.Allocate();
  if (image == RowSlab::kNoRow) {
    cut_->incomplete = true;
    return;
  }
  RowHeader* const saved = cut_->images.Row(image);
  std::memcpy(static_cast<void*>(saved), &row, layout().stride());
  LimitAge(saved);
  // The caller has just found the row, so its group and header are in the caches.
  if (cut_->image_of.Set(index_.Find(row.id, index_.Mix(row.id)), image)) return;
  cut_->images.Free(image);
  cut_->incomplete = true;
}

void RowTable::LimitAge(RowHeader* row) const {
  if (AgeOf(*row) > kMaxAge) row->set_changed(static_cast<uint32_t>(generation_ - kMaxAge));
}

}  // namespace keelson
