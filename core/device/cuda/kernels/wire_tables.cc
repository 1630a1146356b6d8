#include "core/device/cuda/kernels/wire_tables.h"

#include <algorithm>

namespace keelson::cuda {
namespace {

static_assert(kWireTileElements == kInt8GroupElements, "a tile of int8 is a group");

// The size of the codes of `elements` elements in whole tiles.
int64_t CodeBytes(WireFormat format, int64_t elements) {
  if (format == WireFormat::kTopK) return 0;
  return static_cast<int64_t>(EncodedBytes(format, elements));
}

}  // namespace

WireTableContents MakeWireTables(const WireLayout& layout) {
  WireTableContents tables;
  if (layout.format == WireFormat::kFloat32) return tables;
  for (size_t i = 0; i < layout.blocks.size(); ++i) {
    const WireBlock& block = layout.blocks[i];
    const auto first_tile = static_cast<int64_t>(tables.tiles.size());
    const auto offset = static_cast<int64_t>(block.offset);
    for (int64_t begin = 0; begin < block.num_elements; begin += kWireTileElements) {
      tables.tiles.push_back(
          {block.first_element + begin, offset + CodeBytes(layout.format, begin),
           static_cast<int32_t>(std::min(kWireTileElements, block.num_elements - begin)),
           static_cast<int32_t>(i)});
    }
    if (layout.format == WireFormat::kTopK) {
      tables.blocks.push_back({block.first_element, block.num_elements, offset, block.top_k_count,
                               first_tile, static_cast<int64_t>(tables.tiles.size()) - first_tile});
    }
  }
  return tables;
}

}  // namespace keelson::cuda
