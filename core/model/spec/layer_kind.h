// The kinds of layers, and their names in configurations.
#ifndef KEELSON_CORE_MODEL_SPEC_LAYER_KIND_H_
#define KEELSON_CORE_MODEL_SPEC_LAYER_KIND_H_

#include <string>

#include "absl/status/statusor.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

enum class LayerKind {
  kDense,
  kConv2D,
  kMaxPool,
  kAvgPool,
  kFlatten,
  kRelu,
  kTanh,
  kSigmoid,
  kDropout,
  kBatchNorm,
  kAdd,
  kMultiply,
  kConcat,
  kSlice,
  kScale,
  kGelu,
  kSilu,
  kSoftmax,
  kLayerNorm,
  kGlobalAveragePool,
  kReshape,
  kCross,
  kEmbedding,
  kEmbeddingBag,
  kDot,
  kCosine,
  kFactorizationMachine,
  kDotInteraction,
  kTranspose,
};

// "dense", "conv2d", ..., as in the configuration.
const char* LayerKindName(LayerKind kind);

// INVALID_ARGUMENT: none is set; the text begins with `path`, the layer's.
absl::StatusOr<LayerKind> LayerKindOf(const v1::LayerConfig& config, const std::string& path);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_LAYER_KIND_H_
