// Layouts and arrays for tests of the codecs' kernels.
#ifndef KEELSON_TESTING_DEVICE_WIRE_CODEC_TESTING_H_
#define KEELSON_TESTING_DEVICE_WIRE_CODEC_TESTING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "core/device/cuda/kernels/wire_tables.h"
#include "core/wire/wire_layout.h"
#include "testing/device/kernel_testing.h"

namespace keelson::cuda {

// Blocks of the given sizes; top-k keeps one of `keep_one_of` elements of each.
inline WireLayout LayoutOf(WireFormat format, const std::vector<int64_t>& sizes,
                           int64_t keep_one_of = 10) {
  WireLayout layout{format, {}, 0, 0};
  for (int64_t n : sizes) {
    const int64_t count = format == WireFormat::kTopK ? std::max<int64_t>(1, n / keep_one_of) : 0;
    layout.blocks.push_back({layout.num_elements, n, layout.bytes, count});
    const size_t bytes = format == WireFormat::kTopK ? TopKBytes(count) : EncodedBytes(format, n);
    layout.num_elements += n;
    layout.bytes += (bytes + 3) / 4 * 4;
  }
  return layout;
}

// A layout's tables on the GPU.
class GpuTables {
 public:
  explicit GpuTables(const WireLayout& layout) : GpuTables(MakeWireTables(layout)) {}

  WireTables tables() { return {tiles_.data(), num_tiles_, blocks_.data(), num_blocks_}; }

 private:
  explicit GpuTables(const WireTableContents& contents)
      : num_tiles_(static_cast<int64_t>(contents.tiles.size())),
        num_blocks_(static_cast<int64_t>(contents.blocks.size())),
        tiles_(contents.tiles),
        blocks_(contents.blocks) {}

  const int64_t num_tiles_;
  const int64_t num_blocks_;
  GpuArray<WireTile> tiles_;
  GpuArray<WireTopKBlock> blocks_;
};

// Compares the bytes of each block; the padding between them may be anything.
inline void ExpectSameBlocks(const WireLayout& layout, const std::vector<uint8_t>& actual,
                             const std::vector<std::vector<uint8_t>>& expected) {
  for (size_t i = 0; i < layout.blocks.size(); ++i) {
    const auto begin = actual.begin() + static_cast<ptrdiff_t>(layout.blocks[i].offset);
    const std::vector<uint8_t> bytes(begin, begin + static_cast<ptrdiff_t>(expected[i].size()));
    ASSERT_EQ(bytes, expected[i]) << "block " << i << " of " << layout.blocks[i].num_elements;
  }
}

}  // namespace keelson::cuda

#endif  // KEELSON_TESTING_DEVICE_WIRE_CODEC_TESTING_H_
