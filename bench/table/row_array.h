// Rows of values without an index, on huge pages: what table_bench gives the tables that have an
// index alone, and the array that it reads as a yardstick.
#ifndef KEELSON_BENCH_TABLE_ROW_ARRAY_H_
#define KEELSON_BENCH_TABLE_ROW_ARRAY_H_

#include <cstddef>
#include <vector>

#include "core/table/row_memory.h"

namespace keelson::bench {

// Rows of `dim` floats, which grow by chunks and stay where they are.
class RowArray {
 public:
  explicit RowArray(size_t dim) : dim_(dim) {}
  RowArray(const RowArray&) = delete;
  RowArray& operator=(const RowArray&) = delete;
  ~RowArray() {
    for (float* chunk : chunks_) memory_.Free(chunk, ChunkBytes());
  }

  // A new row, undefined.
  float* Add() {
    if (rows_ % kChunkRows == 0) {
      chunks_.push_back(static_cast<float*>(memory_.Allocate(ChunkBytes())));
    }
    return Row(rows_++);
  }
  float* Row(size_t number) { return chunks_[number / kChunkRows] + number % kChunkRows * dim_; }
  size_t rows() const { return rows_; }

 private:
  static constexpr size_t kChunkRows = 8192;
  size_t ChunkBytes() const { return kChunkRows * dim_ * sizeof(float); }

  const size_t dim_;
  RowMemory memory_;
  std::vector<float*> chunks_;
  size_t rows_ = 0;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_TABLE_ROW_ARRAY_H_
