#include "core/model/spec/row_indexer.h"

#include <algorithm>
#include <bit>

#include "core/table/row_id.h"

namespace keelson {

std::vector<TableFeatures> TableFeaturesOf(const ModelSpec& spec) {
  std::vector<TableFeatures> tables;
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    TableFeatures& table = tables.emplace_back();
    table.salt = TableSalt(spec.tables[t].name);
    for (const LayerSpec& layer : spec.layers) {
      if (layer.table == t) table.features.push_back(layer.inputs.front());
    }
    std::sort(table.features.begin(), table.features.end());
    table.features.erase(std::unique(table.features.begin(), table.features.end()),
                         table.features.end());
  }
  return tables;
}

void RowIndexer::Index(Batch* batch) {
  batch->rows.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) IndexTable(tables_[t], batch, &batch->rows[t]);
}

void RowIndexer::IndexTable(const TableFeatures& table, Batch* batch, BatchRows* rows) {
  Divide(table, *batch);
  flat_.resize(entries_.size());
  rows->ids.clear();
  for (size_t p = 0; p < kRowPartitions; ++p) {
    const size_t size = begins_[p + 1] - begins_[p];
    if (size == 0) continue;
    IndexPartition(table.salt, absl::MakeConstSpan(entries_).subspan(begins_[p], size), &rows->ids);
  }
  rows->positions.resize(batch->features.size());
  for (std::vector<int32_t>& positions : rows->positions) positions.clear();
  auto from = flat_.begin();
  for (const size_t feature : table.features) {
    const auto end = from + static_cast<int64_t>(batch->features[feature].ids.size());
    rows->positions[feature].assign(from, end);
    from = end;
  }
}

void RowIndexer::Divide(const TableFeatures& table, const Batch& batch) {
  partitions_.clear();
  begins_.assign(kRowPartitions + 1, 0);
  for (const size_t feature : table.features) {
    for (const uint64_t id : batch.features[feature].ids) {
      const uint32_t partition = RowPartitionOf(MixId(id, table.salt));
      partitions_.push_back(static_cast<uint8_t>(partition));
      ++begins_[partition];
    }
  }
  size_t begin = 0;
  for (size_t& count : begins_) begin += std::exchange(count, begin);
  entries_.resize(partitions_.size());
  size_t at = 0;
  for (const size_t feature : table.features) {
    for (const uint64_t id : batch.features[feature].ids) {
      entries_[begins_[partitions_[at]]++] = {id, at};
      ++at;
    }
  }
  // Each has become the next one's.
  std::rotate(begins_.begin(), begins_.end() - 1, begins_.end());
  begins_.front() = 0;
}

void RowIndexer::IndexPartition(uint64_t salt, absl::Span<const Entry> entries,
                                std::vector<uint64_t>* ids) {
  FindDistinct(salt, entries);
  SortDistinct();
  const auto first = static_cast<int32_t>(ids->size());
  ranks_.resize(distinct_.size());
  for (size_t k = 0; k < distinct_.size(); ++k) {
    ids->push_back(distinct_[k].id);
    ranks_[distinct_[k].number] = first + static_cast<int32_t>(k);
  }
  for (size_t k = 0; k < entries.size(); ++k) flat_[entries[k].at] = ranks_[numbers_[k]];
}

void RowIndexer::FindDistinct(uint64_t salt, absl::Span<const Entry> entries) {
  const size_t mask = std::bit_ceil(2 * entries.size()) - 1;
  places_.assign(mask + 1, 0);
  distinct_.clear();
  numbers_.resize(entries.size());
  for (size_t k = 0; k < entries.size(); ++k) {
    const uint64_t id = entries[k].id;
    size_t place = MixId(id, salt) & mask;
    while (places_[place] != 0 && distinct_[places_[place] - 1].id != id) {
      place = (place + 1) & mask;
    }
    if (places_[place] == 0) {
      distinct_.push_back({id, static_cast<uint32_t>(distinct_.size())});
      places_[place] = static_cast<uint32_t>(distinct_.size());
    }
    numbers_[k] = places_[place] - 1;
  }
}

// By the highest bits in which the ids differ first, in about as many parts as there are ids.
void RowIndexer::SortDistinct() {
  const auto less = [](const Distinct& a, const Distinct& b) { return a.id < b.id; };
  const auto [least, most] = std::minmax_element(distinct_.begin(), distinct_.end(), less);
  const uint64_t low = least->id;
  const int bits = std::bit_width(distinct_.size());
  const int shift = std::max(0, static_cast<int>(std::bit_width(most->id - low)) - bits);
  const auto part = [&](const Distinct& distinct) { return (distinct.id - low) >> shift; };
  ends_.assign((size_t{1} << bits) + 1, 0);
  for (const Distinct& distinct : distinct_) ++ends_[part(distinct)];
  uint32_t begin = 0;
  for (uint32_t& end : ends_) begin += std::exchange(end, begin);
  sorted_.resize(distinct_.size());
  for (const Distinct& distinct : distinct_) sorted_[ends_[part(distinct)]++] = distinct;
  std::swap(distinct_, sorted_);
  // Most parts have one or two ids.
  constexpr uint32_t kFew = 24;
  uint32_t first = 0;
  for (const uint32_t end : ends_) {
    if (end - first > kFew) std::sort(distinct_.begin() + first, distinct_.begin() + end, less);
    first = end;
  }
  for (size_t k = 1; k < distinct_.size(); ++k) {
    const Distinct moved = distinct_[k];
    size_t to = k;
    for (; to > 0 && moved.id < distinct_[to - 1].id; --to) distinct_[to] = distinct_[to - 1];
    distinct_[to] = moved;
  }
}

}  // namespace keelson
