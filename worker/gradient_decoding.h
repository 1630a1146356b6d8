// Decodes gradients from their wire format to elements.
#ifndef KEELSON_WORKER_GRADIENT_DECODING_H_
#define KEELSON_WORKER_GRADIENT_DECODING_H_

#include <cstdint>
#include <vector>

#include "core/wire/wire_layout.h"

namespace keelson {

// `bytes` has layout.bytes bytes, as an encoder has written them. `elements` becomes
// layout.num_elements long; elements that TOP_K left out are zero.
void DecodeGradient(const WireLayout& layout, const uint8_t* bytes, std::vector<float>* elements);

}  // namespace keelson

#endif  // KEELSON_WORKER_GRADIENT_DECODING_H_
