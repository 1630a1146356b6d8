#include "core/model/layer.h"

#include "core/model/layers/layers.h"

namespace keelson {

std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, int index, Parameter kernel,
                                 Parameter bias) {
  switch (spec.kind) {
    case LayerKind::kDense:
      return MakeDense(spec, kernel, bias);
    case LayerKind::kConv2D:
      return MakeConv2D(spec, kernel, bias);
    case LayerKind::kMaxPool:
      return MakeMaxPool(spec);
    case LayerKind::kAvgPool:
      return MakeAvgPool(spec);
    case LayerKind::kFlatten:
      return nullptr;
    case LayerKind::kRelu:
      return MakeActivation(spec, ActivationKind::kRelu);
    case LayerKind::kTanh:
      return MakeActivation(spec, ActivationKind::kTanh);
    case LayerKind::kSigmoid:
      return MakeActivation(spec, ActivationKind::kSigmoid);
    case LayerKind::kDropout:
      return MakeDropout(spec, index);
  }
  return nullptr;
}

}  // namespace keelson
