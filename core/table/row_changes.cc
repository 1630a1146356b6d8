#include "core/table/row_changes.h"

#include <algorithm>

namespace keelson {

int64_t ChangesSince::num_erased() const {
  size_t ids = 0;
  for (const auto& set : erased) ids += set->size();
  return static_cast<int64_t>(ids);
}

void RowChanges::ForgetAll() {
  generations_.clear();
  num_erased_ = 0;
}

void RowChanges::StartCut(uint64_t generation) {
  if (forgotten()) return;
  if (generations_.size() == kMostGenerations) return ForgetAll();
  generations_.push_back({generation, 0, nullptr});
}

std::optional<ChangesSince> RowChanges::Since(uint64_t base) const {
  if (forgotten() || base < generations_.front().number) return std::nullopt;
  ChangesSince changes;
  for (size_t i = 0; i + 1 < generations_.size(); ++i) {
    const Generation& generation = generations_[i];
    if (generation.number < base) continue;
    changes.rows += generation.rows;
    if (generation.erased != nullptr) changes.erased.push_back(generation.erased);
  }
  return changes;
}

void RowChanges::ForgetBefore(uint64_t base) {
  const auto end =
      std::find_if(generations_.begin(), generations_.end(),
                   [base](const Generation& generation) { return generation.number >= base; });
  for (auto generation = generations_.begin(); generation != end; ++generation) {
    if (generation->erased != nullptr) num_erased_ -= generation->erased->size();
  }
  generations_.erase(generations_.begin(), end);
}

void RowChanges::NoteChange(uint64_t before) {
  if (forgotten()) return;
  ++generations_.back().rows;
  for (auto generation = generations_.rbegin() + 1; generation != generations_.rend();
       ++generation) {
    if (generation->number > before) continue;
    if (generation->number == before) --generation->rows;
    return;
  }
}

void RowChanges::NoteNew(uint64_t id) {
  if (forgotten()) return;
  Generation& newest = generations_.back();
  ++newest.rows;
  if (newest.erased != nullptr) num_erased_ -= newest.erased->erase(id);
}

void RowChanges::NoteErased(uint64_t id) {
  if (forgotten()) return;
  if (num_erased_ == most_erased_) return ForgetAll();
  Generation& newest = generations_.back();
  --newest.rows;
  if (newest.erased == nullptr) newest.erased = std::make_shared<absl::flat_hash_set<uint64_t>>();
  num_erased_ += newest.erased->insert(id).second ? 1 : 0;
}

size_t RowChanges::bytes() const {
  size_t bytes = 0;
  for (const Generation& generation : generations_) {
    if (generation.erased == nullptr) continue;
    bytes += generation.erased->capacity() * (sizeof(uint64_t) + 1);
  }
  return bytes;
}

}  // namespace keelson
