#include "core/model/spec/layer_kind.h"

#include "absl/strings/str_cat.h"

namespace keelson {

const char* LayerKindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kDense:
      return "dense";
    case LayerKind::kConv2D:
      return "conv2d";
    case LayerKind::kMaxPool:
      return "max_pool";
    case LayerKind::kAvgPool:
      return "avg_pool";
    case LayerKind::kFlatten:
      return "flatten";
    case LayerKind::kRelu:
      return "relu";
    case LayerKind::kTanh:
      return "tanh";
    case LayerKind::kSigmoid:
      return "sigmoid";
    case LayerKind::kDropout:
      return "dropout";
    case LayerKind::kBatchNorm:
      return "batch_norm";
    case LayerKind::kAdd:
      return "add";
    case LayerKind::kMultiply:
      return "multiply";
    case LayerKind::kConcat:
      return "concat";
    case LayerKind::kSlice:
      return "slice";
    case LayerKind::kScale:
      return "scale";
    case LayerKind::kGelu:
      return "gelu";
    case LayerKind::kSilu:
      return "silu";
    case LayerKind::kSoftmax:
      return "softmax";
    case LayerKind::kLayerNorm:
      return "layer_norm";
    case LayerKind::kGlobalAveragePool:
      return "global_average_pool";
    case LayerKind::kReshape:
      return "reshape";
    case LayerKind::kCross:
      return "cross";
    case LayerKind::kEmbedding:
      return "embedding";
    case LayerKind::kEmbeddingBag:
      return "embedding_bag";
    case LayerKind::kDot:
      return "dot";
    case LayerKind::kCosine:
      return "cosine";
    case LayerKind::kFactorizationMachine:
      return "factorization_machine";
    case LayerKind::kDotInteraction:
      return "dot_interaction";
    case LayerKind::kTranspose:
      return "transpose";
  }
  return "";
}

absl::StatusOr<LayerKind> LayerKindOf(const v1::LayerConfig& config, const std::string& path) {
  switch (config.kind_case()) {
    case v1::LayerConfig::kDense:
      return LayerKind::kDense;
    case v1::LayerConfig::kConv2D:
      return LayerKind::kConv2D;
    case v1::LayerConfig::kMaxPool:
      return LayerKind::kMaxPool;
    case v1::LayerConfig::kAvgPool:
      return LayerKind::kAvgPool;
    case v1::LayerConfig::kFlatten:
      return LayerKind::kFlatten;
    case v1::LayerConfig::kRelu:
      return LayerKind::kRelu;
    case v1::LayerConfig::kTanh:
      return LayerKind::kTanh;
    case v1::LayerConfig::kSigmoid:
      return LayerKind::kSigmoid;
    case v1::LayerConfig::kDropout:
      return LayerKind::kDropout;
    case v1::LayerConfig::kBatchNorm:
      return LayerKind::kBatchNorm;
    case v1::LayerConfig::kAdd:
      return LayerKind::kAdd;
    case v1::LayerConfig::kMultiply:
      return LayerKind::kMultiply;
    case v1::LayerConfig::kConcat:
      return LayerKind::kConcat;
    case v1::LayerConfig::kSlice:
      return LayerKind::kSlice;
    case v1::LayerConfig::kScale:
      return LayerKind::kScale;
    case v1::LayerConfig::kGelu:
      return LayerKind::kGelu;
    case v1::LayerConfig::kSilu:
      return LayerKind::kSilu;
    case v1::LayerConfig::kSoftmax:
      return LayerKind::kSoftmax;
    case v1::LayerConfig::kLayerNorm:
      return LayerKind::kLayerNorm;
    case v1::LayerConfig::kGlobalAveragePool:
      return LayerKind::kGlobalAveragePool;
    case v1::LayerConfig::kReshape:
      return LayerKind::kReshape;
    case v1::LayerConfig::kCross:
      return LayerKind::kCross;
    case v1::LayerConfig::kEmbedding:
      return LayerKind::kEmbedding;
    case v1::LayerConfig::kEmbeddingBag:
      return LayerKind::kEmbeddingBag;
    case v1::LayerConfig::kDot:
      return LayerKind::kDot;
    case v1::LayerConfig::kCosine:
      return LayerKind::kCosine;
    case v1::LayerConfig::kFactorizationMachine:
      return LayerKind::kFactorizationMachine;
    case v1::LayerConfig::kDotInteraction:
      return LayerKind::kDotInteraction;
    case v1::LayerConfig::kTranspose:
      return LayerKind::kTranspose;
    case v1::LayerConfig::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected a kind of layer (dense, conv2d, max_pool, ...), found none"));
}

}  // namespace keelson
