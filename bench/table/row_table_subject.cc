#include "bench/table/row_table_subject.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/base/log.h"

namespace keelson::bench {

RowTableSubject::RowTableSubject(RowLayout layout, const InitialRows* initial)
    : layout_(std::move(layout)), options_{&layout_, initial, &memory_, kBenchSalt} {
  for (auto& partition : partitions_) partition = std::make_unique<Partition>(&options_);
}

size_t RowTableSubject::Find(const IdBatch& batch, float* out) {
  const auto dim = static_cast<size_t>(layout_.dim());
  std::array<const RowHeader*, kSlice> rows;
  size_t found = 0;
  for (size_t p = 0; p < kRowPartitions; ++p) {
    const absl::Span<const uint64_t> ids = batch.Partition(p);
    MutexLock lock(&partitions_[p]->mu);
    for (size_t first = 0; first < ids.size(); first += kSlice) {
      const auto slice = ids.subspan(first, kSlice);
      partitions_[p]->table.Find(slice, absl::MakeSpan(rows));
      for (size_t i = 0; i < slice.size(); ++i) {
        if (rows[i] == nullptr) continue;
        std::copy_n(rows[i]->values(), dim, out + found * dim);
        ++found;
      }
    }
  }
  return found;
}

void RowTableSubject::InsertPartition(const IdBatch& batch, size_t partition) {
  const absl::Span<const uint64_t> ids = batch.Partition(partition);
  std::array<RowHeader*, kSlice> rows;
  MutexLock lock(&partitions_[partition]->mu);
  for (size_t first = 0; first < ids.size(); first += kSlice) {
    const auto slice = ids.subspan(first, kSlice);
    const absl::Status status =
        partitions_[partition]->table.FindOrCreate(slice, slice.size(), absl::MakeSpan(rows));
    if (status.ok()) continue;
    LogError(status.message());
    std::abort();
  }
}

void RowTableSubject::Insert(const IdBatch& batch) {
  for (size_t p = 0; p < kRowPartitions; ++p) InsertPartition(batch, p);
}

std::optional<size_t> RowTableSubject::BytesOverValues() const {
  size_t bytes = 0, rows = 0;
  for (const auto& partition : partitions_) {
    MutexLock lock(&partition->mu);
    bytes += sizeof(Partition) + partition->table.row_bytes() + partition->table.index_bytes();
    rows += partition->table.rows();
  }
  return bytes - rows * static_cast<size_t>(layout_.floats()) * sizeof(float);
}

}  // namespace keelson::bench
