#include "core/table/row_slab.h"

#include <cstring>

#include "core/table/row_prefetch.h"

namespace keelson {
namespace {

// New rows are filled one after the other; this one is on its way while others are filled.
constexpr uint32_t kAhead = 2;

}  // namespace

RowSlab::~RowSlab() {
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk].capacity > 0) memory_->Free(chunk_rows_[chunk], ChunkBytes(chunk));
  }
}

size_t RowSlab::ChunkBytes(size_t chunk) const {
  const size_t bytes = stride_ << RowBits(chunk);
  if (bytes < kWholePagesFrom) return bytes;
  // Rounded down it wastes less than a row, rounded up less than a page.
  const size_t down = bytes / RowMemory::kPage * RowMemory::kPage;
  return stride_ < RowMemory::kPage || down == bytes ? down : down + RowMemory::kPage;
}

size_t RowSlab::ChunkCapacity(size_t chunk) const {
  const uint64_t numbers = std::min<uint64_t>(
      uint64_t{1} << RowBits(chunk), max_numbers_ - std::min(max_numbers_, NumberOf(chunk, 0)));
  return std::min<uint64_t>(numbers, ChunkBytes(chunk) / stride_);
}

size_t RowSlab::bytes() const {
  return chunk_bytes_ + chunk_rows_.capacity() * sizeof(char*) +
         chunks_.capacity() * sizeof(Chunk) + room_.capacity() * sizeof(uint64_t);
}

bool RowSlab::full() const {
  return LowestWithRoom() == chunks_.size() && without_memory_ == 0 &&
         ChunkCapacity(chunks_.size()) == 0;
}

size_t RowSlab::LowestWithRoom() const {
  for (size_t word = 0; word < room_.size(); ++word) {
    if (room_[word] != 0) return word * 64 + static_cast<size_t>(std::countr_zero(room_[word]));
  }
  return chunks_.size();
}

void RowSlab::SetRoom(size_t chunk, bool room) {
  const uint64_t bit = uint64_t{1} << chunk % 64;
  uint64_t& word = room_[chunk / 64];
  word = room ? word | bit : word & ~bit;
}

bool RowSlab::AddChunk() {
  size_t chunk = chunks_.size();
  if (without_memory_ > 0) {
    chunk = 0;
    while (chunks_[chunk].capacity > 0) ++chunk;
  }
  const size_t capacity = ChunkCapacity(chunk);
  if (capacity == 0) return false;
  auto* const rows = static_cast<char*>(memory_->Allocate(ChunkBytes(chunk)));
  if (rows == nullptr) return false;
  if (chunk == chunks_.size()) {
    chunk_rows_.push_back(rows);
    chunks_.emplace_back();
    room_.resize(chunk / 64 + 1);
  } else {
    chunk_rows_[chunk] = rows;
    --without_memory_;
  }
  chunks_[chunk].capacity = static_cast<uint32_t>(capacity);
  chunk_bytes_ += ChunkBytes(chunk);
  SetRoom(chunk, true);
  return true;
}

uint32_t RowSlab::Allocate() {
  size_t chunk = LowestWithRoom();
  if (chunk == chunks_.size()) {
    if (!AddChunk()) return kNoRow;
    chunk = LowestWithRoom();
  }
  Chunk& state = chunks_[chunk];
  uint32_t row = state.free;
  if (row != kNoRow) {
    state.free = RowAt(chunk, row)->last_step;
  } else {
    row = state.begun++;
    RowAt(chunk, row)->state = 0;
    PrefetchRow<RowUse::kWrite>(RowAt(chunk, std::min(row + kAhead, state.capacity - 1)), stride_);
  }
  state.end = std::max(state.end, row + 1);
  ++state.live;
  ++rows_;
  if (state.live == state.capacity) SetRoom(chunk, false);
  if (empty_ == chunk) empty_ = ~size_t{0};
  return static_cast<uint32_t>(NumberOf(chunk, row));
}

void RowSlab::Free(uint32_t number) {
  const Place place = PlaceOf(number);
  Chunk& state = chunks_[place.chunk];
  RowHeader* const row = RowAt(place.chunk, place.row);
#ifndef NDEBUG
  constexpr int kPoison = 0xdb;
  std::memset(static_cast<void*>(row), kPoison, stride_);
#endif
  row->state = 0;
  row->last_step = state.free;
  state.free = static_cast<uint32_t>(place.row);
  --rows_;
  SetRoom(place.chunk, true);
  if (--state.live == 0) HandleEmptyChunk(place.chunk);
}

// One empty chunk is kept, so that a table whose last row comes and goes does not allocate each
// time.
void RowSlab::HandleEmptyChunk(size_t chunk) {
  Chunk& state = chunks_[chunk];
  state.begun = state.end = 0;
  state.free = kNoRow;
  if (empty_ == ~size_t{0}) {
    empty_ = chunk;
    return;
  }
  const size_t higher = std::max(chunk, empty_);
  empty_ = std::min(chunk, empty_);
  GiveBack(higher);
}

void RowSlab::GiveBack(size_t chunk) {
  memory_->Free(chunk_rows_[chunk], ChunkBytes(chunk));
  chunk_bytes_ -= ChunkBytes(chunk);
  chunk_rows_[chunk] = nullptr;
  chunks_[chunk] = {};
  SetRoom(chunk, false);
  ++without_memory_;
  while (!chunks_.empty() && chunks_.back().capacity == 0) {
    chunks_.pop_back();
    chunk_rows_.pop_back();
    --without_memory_;
  }
  room_.resize((chunks_.size() + 63) / 64);
}

uint32_t RowSlab::HighestToMove(size_t* places) {
  const size_t room = LowestWithRoom();
  for (size_t chunk = chunks_.size(); chunk-- > room + 1;) {
    Chunk& state = chunks_[chunk];
    if (state.live == 0) continue;
    while (*places > 0) {
      --*places;
      if (RowAt(chunk, state.end - 1)->live()) {
        return static_cast<uint32_t>(NumberOf(chunk, state.end - 1));
      }
      --state.end;
    }
    return kNoRow;
  }
  return kNoRow;
}

}  // namespace keelson
