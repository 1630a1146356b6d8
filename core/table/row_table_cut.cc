#include "core/table/row_table_cut.h"

#include <algorithm>

namespace keelson {

ImageNumbers::~ImageNumbers() {
  for (uint32_t* const block : blocks_) {
    if (block != nullptr) memory_->Free(block, kBlock * sizeof(uint32_t));
  }
}

bool ImageNumbers::Set(uint32_t number, uint32_t image) {
  const size_t block = number / kBlock;
  if (block >= blocks_.size()) blocks_.resize(block + 1);
  uint32_t*& numbers = blocks_[block];
  if (numbers == nullptr) {
    numbers = static_cast<uint32_t*>(memory_->Allocate(kBlock * sizeof(uint32_t)));
    if (numbers == nullptr) return false;
    std::fill_n(numbers, kBlock, RowSlab::kNoRow);
    ++allocated_;
  }
  numbers[number % kBlock] = image;
  return true;
}

size_t ImageNumbers::bytes() const {
  return allocated_ * kBlock * sizeof(uint32_t) + blocks_.capacity() * sizeof(uint32_t*);
}

}  // namespace keelson
