// Numbered places for rows of one size, in chunks that are small at first and grow with the number
// of rows: 32 chunks for each doubling, so that no more than about a 32nd of the memory waits to be
// used.
#ifndef KEELSON_CORE_TABLE_ROW_SLAB_H_
#define KEELSON_CORE_TABLE_ROW_SLAB_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/table/row_layout.h"
#include "core/table/row_memory.h"

namespace keelson {

// Not thread-safe. A row stays where it is until it is freed. The lowest chunk that has a free
// place is used first, so that upper chunks become empty; empty chunks but one are given back.
class RowSlab {
 public:
  static constexpr uint32_t kNoRow = ~uint32_t{0};
  static constexpr uint64_t kMaxNumbers = kNoRow;

  // Rows of `stride` bytes, with numbers below `max_numbers` (at most kMaxNumbers). `memory`
  // outlives the slab.
  RowSlab(RowMemory* memory, size_t stride, uint64_t max_numbers = kMaxNumbers)
      : memory_(memory), stride_(stride), max_numbers_(max_numbers) {}
  RowSlab(const RowSlab&) = delete;
  RowSlab& operator=(const RowSlab&) = delete;
  ~RowSlab();

  // A place whose content is undefined; the caller makes it live. kNoRow: all numbers are in use
  // (full()), or there is no memory.
  uint32_t Allocate();
  // In debug builds the row is overwritten.
  void Free(uint32_t number);

  RowHeader* Row(uint32_t number) const {
    const Place place = PlaceOf(number);
    return RowAt(place.chunk, place.row);
  }

  // The same, or null if the number, any, is not in use or its row is not live.
  RowHeader* LiveRow(uint32_t number) const {
    RowHeader* const row = RowOrNull(number);
    return row != nullptr && row->live() ? row : nullptr;
  }
  // The same, or null where there is surely none; nothing is read of the row.
  RowHeader* RowOrNull(uint32_t number) const {
    const Place place = PlaceOf(number);
    if (place.chunk >= chunks_.size() || place.row >= chunks_[place.chunk].end) return nullptr;
    return RowAt(place.chunk, place.row);
  }

  size_t rows() const { return rows_; }
  // Chunks and what describes them.
  size_t bytes() const;
  // Whether no further number is left.
  bool full() const;

  // All live rows have numbers below this.
  uint64_t end() const {
    if (chunks_.empty()) return 0;
    return NumberOf(chunks_.size() - 1, 0) + chunks_.back().end;
  }

  // Calls visit(number, row) for the live rows among the next `max_places` places from number *next
  // on, ascending, and sets *next behind them; false: those were the last ones.
  template <typename Visit>
  bool VisitLive(uint64_t* next, size_t max_places, Visit visit) const;

  // The highest live row, if a lower chunk has a place for it; looks at *places places at most and
  // takes off how many it looked at. kNoRow: there is none, or *places is 0 and it was not found.
  uint32_t HighestToMove(size_t* places);

 private:
  // The chunks [32 k, 32 (k + 1)) have 2^(k + 2) numbers each, and together those from
  // 2^(k + 7) - 2^7 on.
  static constexpr uint32_t kSameBits = 5;
  static constexpr uint32_t kFirstBits = 7;
  // Rows whose headers are on their way while rows are visited: the processor asks for none of the
  // next page by itself.
  static constexpr size_t kVisitAhead = 32;
  // Chunks from this size on consist of whole pages, those of less than a page at their end unused.
  static constexpr size_t kWholePagesFrom = 16 * RowMemory::kPage;

  struct Place {
    size_t chunk;
    size_t row;
  };
  struct Chunk {
    uint32_t capacity = 0;   // rows; 0: the chunk has no memory
    uint32_t begun = 0;      // places that have been used since the chunk was empty
    uint32_t end = 0;        // no row from here on is live
    uint32_t live = 0;       // rows
    uint32_t free = kNoRow;  // the first of the freed places, each of which names the next one
  };

  static Place PlaceOf(uint64_t number) {
    const uint64_t shifted = number + (uint64_t{1} << kFirstBits);
    const uint32_t exponent = static_cast<uint32_t>(std::bit_width(shifted)) - 1;
    const uint32_t row_bits = exponent - kSameBits;
    const uint64_t same = (shifted >> row_bits) & ((1 << kSameBits) - 1);
    return {(exponent - kFirstBits) << kSameBits | same, shifted & ((uint64_t{1} << row_bits) - 1)};
  }
  static uint64_t NumberOf(size_t chunk, size_t row) {
    const uint64_t same = (1 << kSameBits) | (chunk & ((1 << kSameBits) - 1));
    return (same << RowBits(chunk) | row) - (uint64_t{1} << kFirstBits);
  }
  static size_t RowBits(size_t chunk) { return (chunk >> kSameBits) + kFirstBits - kSameBits; }

  RowHeader* RowAt(size_t chunk, size_t row) const {
    return reinterpret_cast<RowHeader*>(chunk_rows_[chunk] + row * stride_);
  }
  // The size of a chunk, with memory or without.
  size_t ChunkBytes(size_t chunk) const;
  size_t ChunkCapacity(size_t chunk) const;
  // The lowest chunk with a free place; chunks_.size(): none.
  size_t LowestWithRoom() const;
  void SetRoom(size_t chunk, bool room);
  // False: no numbers or no memory.
  bool AddChunk();
  void HandleEmptyChunk(size_t chunk);
  void GiveBack(size_t chunk);

  RowMemory* const memory_;
  const size_t stride_;
  const uint64_t max_numbers_;
  std::vector<char*> chunk_rows_;
  std::vector<Chunk> chunks_;
  std::vector<uint64_t> room_;  // a bit for each chunk
  size_t rows_ = 0;
  size_t chunk_bytes_ = 0;
  size_t without_memory_ = 0;  // chunks
  size_t empty_ = ~size_t{0};  // a chunk with memory but no live row
};

template <typename Visit>
bool RowSlab::VisitLive(uint64_t* next, size_t max_places, Visit visit) const {
  while (true) {
    const Place place = PlaceOf(*next);
    if (place.chunk >= chunks_.size()) return false;
    const size_t end = std::min<size_t>(chunks_[place.chunk].end, place.row + max_places);
    for (size_t row = place.row; row < end; ++row) {
      RowHeader* const header = RowAt(place.chunk, row);
      __builtin_prefetch(RowAt(place.chunk, row + kVisitAhead));
      if (header->live()) visit(static_cast<uint32_t>(NumberOf(place.chunk, row)), header);
    }
    if (end > place.row) max_places -= end - place.row;
    if (max_places == 0) {
      *next = NumberOf(place.chunk, end - 1) + 1;
      return true;
    }
    *next = NumberOf(place.chunk + 1, 0);
  }
}

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_SLAB_H_
