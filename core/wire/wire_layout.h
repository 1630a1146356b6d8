// The positions of the blocks in the bytes of an encoded array, which devices and clients need to
// encode gradients for the servers.
#ifndef KEELSON_CORE_WIRE_WIRE_LAYOUT_H_
#define KEELSON_CORE_WIRE_WIRE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/wire/wire_format.h"

namespace keelson {

struct WireBlock {
  int64_t first_element = 0;
  int64_t num_elements = 0;  // > 0
  size_t offset = 0;         // of the block's first byte; a multiple of 4
  int64_t top_k_count = 0;   // kTopK: elements that are sent, from 1 to num_elements

  friend bool operator==(const WireBlock&, const WireBlock&) = default;
};

// The blocks follow each other: in elements from 0 to num_elements without a gap, in bytes padded
// to multiples of 4.
struct WireLayout {
  WireFormat format = WireFormat::kFloat32;
  std::vector<WireBlock> blocks;
  int64_t num_elements = 0;
  size_t bytes = 0;

  friend bool operator==(const WireLayout&, const WireLayout&) = default;
};

// A layout of one block of every element. Not for kTopK.
WireLayout WholeArrayLayout(WireFormat format, int64_t num_elements);

// The wire layout of one variable: its gradient in blocks, its values as one array of an
// elementwise format.
struct VariableWire {
  WireLayout gradient;
  WireFormat values = WireFormat::kFloat32;
};

// Memory for a model's values and gradients in wire format: an array per variable, and one set of
// arrays for each step that may be under way ([set][variable]). Of VariableWire w, a gradient has
// w.gradient.bytes, values have EncodedBytes(w.values, w.gradient.num_elements).
struct WireMemory {
  std::vector<std::vector<absl::Span<uint8_t>>> values;
  std::vector<std::vector<absl::Span<uint8_t>>> gradients;
};

}  // namespace keelson

#endif  // KEELSON_CORE_WIRE_WIRE_LAYOUT_H_
