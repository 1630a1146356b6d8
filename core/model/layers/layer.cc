#include "core/model/layers/layer.h"

#include "core/model/layers/layers.h"

namespace keelson {

std::optional<ActivationKind> ActivationOf(LayerKind kind) {
  switch (kind) {
    case LayerKind::kRelu:
      return ActivationKind::kRelu;
    case LayerKind::kTanh:
      return ActivationKind::kTanh;
    case LayerKind::kSigmoid:
      return ActivationKind::kSigmoid;
    default:
      return std::nullopt;
  }
}

bool TakesActivation(LayerKind kind) {
  return kind == LayerKind::kDense || kind == LayerKind::kConv2D;
}

bool ReadsInputsBackward(LayerKind kind) {
  return kind == LayerKind::kDense || kind == LayerKind::kConv2D || kind == LayerKind::kMaxPool ||
         kind == LayerKind::kBatchNorm || kind == LayerKind::kMultiply ||
         kind == LayerKind::kGelu || kind == LayerKind::kSilu || kind == LayerKind::kLayerNorm ||
         kind == LayerKind::kCross || kind == LayerKind::kDot || kind == LayerKind::kCosine ||
         kind == LayerKind::kFactorizationMachine;
}

bool ReadsOutputBackward(LayerKind kind) {
  return kind == LayerKind::kMaxPool || kind == LayerKind::kSoftmax || kind == LayerKind::kCosine ||
         ActivationOf(kind).has_value();
}

bool KeepsElements(LayerKind kind) {
  return kind == LayerKind::kFlatten || kind == LayerKind::kReshape;
}

std::vector<int64_t> KeptFloats(const LayerSpec& spec) {
  switch (spec.kind) {
    case LayerKind::kLayerNorm:
      return KeptByLayerNorm(spec);
    case LayerKind::kCross:
      return KeptByCross(spec);
    case LayerKind::kCosine:
      return KeptByCosine();
    case LayerKind::kFactorizationMachine:
      return KeptByFactorizationMachine(spec);
    case LayerKind::kDotInteraction:
      return KeptByDotInteraction(spec);
    default:
      return {};
  }
}

std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, size_t index,
                                 absl::Span<const Parameter> parameters,
                                 std::optional<ActivationKind> activation, Parameter rows) {
  const auto parameter = [parameters](std::optional<size_t> variable) {
    return variable ? parameters[*variable] : Parameter{};
  };
  switch (spec.kind) {
    case LayerKind::kDense:
      return MakeDense(spec, parameter(spec.kernel), parameter(spec.bias), activation);
    case LayerKind::kConv2D:
      return MakeConv2D(spec, parameter(spec.kernel), parameter(spec.bias), activation);
    case LayerKind::kMaxPool:
      return MakeMaxPool(spec);
    case LayerKind::kAvgPool:
      return MakeAvgPool(spec);
    case LayerKind::kFlatten:
    case LayerKind::kReshape:
      return nullptr;
    case LayerKind::kRelu:
    case LayerKind::kTanh:
    case LayerKind::kSigmoid:
      return MakeActivation(spec, *ActivationOf(spec.kind));
    case LayerKind::kDropout:
      return MakeDropout(spec, index);
    case LayerKind::kBatchNorm:
      return MakeBatchNorm(spec, {.gamma = parameter(spec.gamma),
                                  .beta = parameter(spec.beta),
                                  .moving_mean = parameter(spec.moving_mean),
                                  .moving_variance = parameter(spec.moving_variance)});
    case LayerKind::kAdd:
      return MakeAdd(spec);
    case LayerKind::kMultiply:
      return MakeMultiply(spec);
    case LayerKind::kConcat:
      return MakeConcat(spec);
    case LayerKind::kSlice:
      return MakeSlice(spec);
    case LayerKind::kScale:
      return MakeScale(spec);
    case LayerKind::kGelu:
      return MakeGate(spec, GateKind::kGelu);
    case LayerKind::kSilu:
      return MakeGate(spec, GateKind::kSilu);
    case LayerKind::kSoftmax:
      return MakeSoftmax(spec);
    case LayerKind::kLayerNorm:
      return MakeLayerNorm(spec, parameter(spec.gamma), parameter(spec.beta));
    case LayerKind::kGlobalAveragePool:
      return MakeGlobalAveragePool(spec);
    case LayerKind::kCross:
      return MakeCross(spec, {.down_kernel = parameter(spec.down_kernel),
                              .kernel = parameter(spec.kernel),
                              .bias = parameter(spec.bias)});
    case LayerKind::kEmbedding:
    case LayerKind::kEmbeddingBag:
      return MakeEmbedding(spec, spec.table ? rows : parameter(spec.embeddings));
    case LayerKind::kDot:
      return MakeDot(spec);
    case LayerKind::kCosine:
      return MakeCosine(spec);
    case LayerKind::kFactorizationMachine:
      return MakeFactorizationMachine(spec);
    case LayerKind::kDotInteraction:
      return MakeDotInteraction(spec);
    case LayerKind::kTranspose:
      return MakeTranspose(spec);
  }
  return nullptr;
}

}  // namespace keelson
