#include "core/wire/wire_layout.h"

namespace keelson {

WireLayout WholeArrayLayout(WireFormat format, int64_t num_elements) {
  WireLayout layout{format, {}, num_elements, 0};
  if (num_elements == 0) return layout;
  layout.blocks.push_back({0, num_elements, 0, 0});
  layout.bytes = (EncodedBytes(format, num_elements) + 3) / 4 * 4;
  return layout;
}

}  // namespace keelson
