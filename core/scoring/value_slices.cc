#include "core/scoring/value_slices.h"

#include <algorithm>
#include <map>
#include <utility>

namespace keelson {

void ValueSlices::Add(uint64_t id, float score, bool positive) {
  auto found = ids_.find(id);
  if (found == ids_.end() && ids_.size() < most_ids_) found = ids_.try_emplace(id).first;
  BinaryTotals& totals = found == ids_.end() ? others_ : found->second;
  totals.Add(score, positive);
}

std::vector<ValueSlice> ValueSlices::MostFrequent(size_t most) const {
  std::vector<ValueSlice> slices;
  slices.reserve(ids_.size());
  for (const auto& [id, totals] : ids_) slices.push_back({id, totals});
  const auto is_before = [](const ValueSlice& a, const ValueSlice& b) {
    return std::pair(-a.totals.examples(), a.id) < std::pair(-b.totals.examples(), b.id);
  };
  const size_t count = std::min(most, slices.size());
  std::partial_sort(slices.begin(), slices.begin() + static_cast<ptrdiff_t>(count), slices.end(),
                    is_before);
  slices.resize(count);
  return slices;
}

std::vector<FrequencySlice> ValueSlices::ByFrequency() const {
  std::map<int64_t, FrequencySlice> slices;
  for (const auto& id : ids_) {
    const BinaryTotals& totals = id.second;
    int64_t from = 1;
    while (totals.examples() >= 2 * from) from *= 2;
    FrequencySlice& slice = slices[from];
    slice.from = from;
    slice.to = 2 * from - 1;
    ++slice.ids;
    slice.totals.Add(totals);
  }
  std::vector<FrequencySlice> list;
  for (const auto& slice : slices) list.push_back(slice.second);
  return list;
}

}  // namespace keelson
