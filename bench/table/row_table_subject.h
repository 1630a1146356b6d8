// Keelson's tables as a server uses them: a RowTable and a lock for each virtual partition.
#ifndef KEELSON_BENCH_TABLE_ROW_TABLE_SUBJECT_H_
#define KEELSON_BENCH_TABLE_ROW_TABLE_SUBJECT_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "bench/table/id_batches.h"
#include "bench/table/subject.h"
#include "core/base/mutex.h"
#include "core/table/initial_rows.h"
#include "core/table/row_id.h"
#include "core/table/row_layout.h"
#include "core/table/row_memory.h"
#include "core/table/row_table.h"

namespace keelson::bench {

// Thread-safe.
class RowTableSubject : public Subject {
 public:
  RowTableSubject(RowLayout layout, const InitialRows* initial);

  size_t Find(const IdBatch& batch, float* out) override;
  void Insert(const IdBatch& batch) override;
  std::optional<size_t> BytesOverValues() const override;

  size_t IndexBytes() {
    size_t b = 0;
    for (auto& p : partitions_) {
      MutexLock lock(&p->mu);
      b += p->table.index_bytes();
    }
    return b;
  }
  // Calls use(rows) with rows that exist, 128 at most, under their partition's lock.
  template <typename Use>
  void Change(const IdBatch& batch, Use use);
  // FindOrCreate for one partition of the batch.
  void InsertPartition(const IdBatch& batch, size_t partition);

  const RowLayout& layout() const { return layout_; }

 private:
  // The rows that a slice copies are still in the first cache when they are copied.
  static constexpr size_t kSlice = 128;

  struct Partition {
    explicit Partition(const RowTable::Options* options) : table(options) {}
    mutable Mutex mu;
    RowTable table ABSL_GUARDED_BY(mu);
  };

  const RowLayout layout_;
  RowMemory memory_;
  const RowTable::Options options_;
  std::array<std::unique_ptr<Partition>, kRowPartitions> partitions_;
};

template <typename Use>
void RowTableSubject::Change(const IdBatch& batch, Use use) {
  std::array<RowHeader*, kSlice> rows;
  for (size_t p = 0; p < kRowPartitions; ++p) {
    const absl::Span<const uint64_t> ids = batch.Partition(p);
    MutexLock lock(&partitions_[p]->mu);
    for (size_t first = 0; first < ids.size(); first += kSlice) {
      const auto slice = ids.subspan(first, kSlice);
      partitions_[p]->table.FindForChange(slice, absl::MakeSpan(rows));
      use(absl::MakeSpan(rows).first(slice.size()), batch.begins[p] + first);
    }
  }
}

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_ROW_TABLE_SUBJECT_H_
