// For RowTable and RowCutReader alone.
#ifndef KEELSON_CORE_TABLE_ROW_TABLE_CUT_H_
#define KEELSON_CORE_TABLE_ROW_TABLE_CUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/table/row_memory.h"
#include "core/table/row_slab.h"
#include "core/table/row_table.h"

namespace keelson {

// The images of rows, by the rows' numbers: an array in blocks, which are allocated as they are
// needed. Rows stay at their numbers while a cut is open, and a number gets one image at most: a
// row that is made at it later has changed since the cut.
class ImageNumbers {
 public:
  // `memory` outlives this.
  explicit ImageNumbers(RowMemory* memory) : memory_(memory) {}
  ImageNumbers(const ImageNumbers&) = delete;
  ImageNumbers& operator=(const ImageNumbers&) = delete;
  ~ImageNumbers();

  // False: there is no memory.
  bool Set(uint32_t number, uint32_t image);
  // RowSlab::kNoRow: there is no image.
  uint32_t Of(uint32_t number) const {
    const size_t block = number / kBlock;
    if (block >= blocks_.size() || blocks_[block] == nullptr) return RowSlab::kNoRow;
    return blocks_[block][number % kBlock];
  }
  size_t bytes() const;

 private:
  static constexpr size_t kBlock = 512;  // numbers: 2 KiB

  RowMemory* const memory_;
  std::vector<uint32_t*> blocks_;
  size_t allocated_ = 0;
};

// An open cut: the rows that have changed since, as they were.
struct RowTable::Cut {
  explicit Cut(const Options& options)
      : images(options.memory, options.layout->stride(), options.max_images),
        image_of(options.memory) {}

  size_t bytes() const { return images.bytes() + image_of.bytes(); }

  RowSlab images;
  ImageNumbers image_of;
  // There was no place or no memory for an image.
  bool incomplete = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_TABLE_CUT_H_
