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
         kind == LayerKind::kBatchNorm || kind == LayerKind::kMultiply;
}

bool ReadsOutputBackward(LayerKind kind) {
  return kind == LayerKind::kMaxPool || ActivationOf(kind).has_value();
}

std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, size_t index,
                                 absl::Span<const Parameter> parameters,
                                 std::optional<ActivationKind> activation) {
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
  }
  return nullptr;
}

}  // namespace keelson
