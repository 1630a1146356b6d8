// The windows that convolutions and pools move over an image.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYERS_WINDOW_H_
#define KEELSON_CORE_MODEL_SPEC_LAYERS_WINDOW_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/model/spec/layer_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Sets the padding of the layer's window, which has its extent and stride already, and the output,
// of `channels`. INVALID_ARGUMENT, the text beginning with `path` or a field of it: the input is no
// image, the stride is not positive, window or stride is above kMaxElements, the padding is
// unknown, or the window does not fit the input.
absl::Status InferWindow(v1::Padding padding, const std::string& path, int64_t channels,
                         LayerSpec* layer);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYERS_WINDOW_H_
