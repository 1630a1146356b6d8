#include "core/model/spec/layers/layer_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/spec/layers/groups.h"

namespace keelson {

size_t LayerContext::AddVariable(const LayerSpec& layer, absl::string_view name, Shape shape,
                                 Initializer initializer,
                                 std::optional<float> average_decay) const {
  const size_t position = variables->size();
  variables->push_back(
      {absl::StrCat(layer.name, "/", name), std::move(shape), initializer, average_decay});
  return position;
}

LayerRules RulesOf(LayerKind kind) {
  switch (kind) {
    case LayerKind::kDense:
      return DenseRules();
    case LayerKind::kConv2D:
      return Conv2DRules();
    case LayerKind::kMaxPool:
      return MaxPoolRules();
    case LayerKind::kAvgPool:
      return AvgPoolRules();
    case LayerKind::kFlatten:
      return FlattenRules();
    case LayerKind::kRelu:
    case LayerKind::kTanh:
    case LayerKind::kSigmoid:
      return ActivationRules();
    case LayerKind::kDropout:
      return DropoutRules();
    case LayerKind::kBatchNorm:
      return BatchNormRules();
    case LayerKind::kAdd:
      return AddRules();
    case LayerKind::kMultiply:
      return MultiplyRules();
    case LayerKind::kConcat:
      return ConcatRules();
    case LayerKind::kSlice:
      return SliceRules();
    case LayerKind::kScale:
      return ScaleRules();
    case LayerKind::kGelu:
    case LayerKind::kSilu:
      return GateRules();
    case LayerKind::kSoftmax:
      return SoftmaxRules();
    case LayerKind::kLayerNorm:
      return LayerNormRules();
    case LayerKind::kGlobalAveragePool:
      return GlobalAveragePoolRules();
    case LayerKind::kReshape:
      return ReshapeRules();
    case LayerKind::kCross:
      return CrossRules();
    case LayerKind::kEmbedding:
      return EmbeddingRules();
    case LayerKind::kEmbeddingBag:
      return EmbeddingBagRules();
    case LayerKind::kDot:
      return DotRules();
    case LayerKind::kCosine:
      return CosineRules();
    case LayerKind::kFactorizationMachine:
      return FactorizationMachineRules();
    case LayerKind::kDotInteraction:
      return DotInteractionRules();
    case LayerKind::kTranspose:
      return TransposeRules();
  }
  return {};
}

bool SharesVariables(LayerKind layer, LayerKind owner) {
  const auto is_embedding = [](LayerKind kind) {
    return kind == LayerKind::kEmbedding || kind == LayerKind::kEmbeddingBag;
  };
  if (is_embedding(layer)) return is_embedding(owner);
  return layer == owner && RulesOf(layer).shares_variables;
}

}  // namespace keelson
