#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class LayerNorm : public UnaryLayer {
 public:
  LayerNorm(const LayerSpec& spec, Parameter gamma, Parameter beta)
      : UnaryLayer(spec), gamma_(gamma), beta_(beta) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    DeviceMemory* const mean = pass.training ? pass.kept[0] : nullptr;
    DeviceMemory* const inverse_deviation = pass.training ? pass.kept[1] : nullptr;
    device->LayerNorm(Geometry(pass), x, gamma_.value, beta_.value, mean, inverse_deviation, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& x, const DeviceMemory& /*y*/,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    device->LayerNormBackward(Geometry(pass), x, gamma_.value, *pass.kept[0], *pass.kept[1], *dy,
                              gamma_.gradient, beta_.gradient, dx);
  }

 private:
  LayerNormGeometry Geometry(const Pass& pass) const {
    const int64_t features = spec().output.dims().back();
    return {.rows = pass.batch * (spec().output.num_elements() / features),
            .features = features,
            .epsilon = spec().epsilon};
  }

  const Parameter gamma_;
  const Parameter beta_;
};

}  // namespace

std::unique_ptr<Layer> MakeLayerNorm(const LayerSpec& spec, Parameter gamma, Parameter beta) {
  return std::make_unique<LayerNorm>(spec, gamma, beta);
}

std::vector<int64_t> KeptByLayerNorm(const LayerSpec& spec) {
  const int64_t rows = spec.output.num_elements() / spec.output.dims().back();
  return {rows, rows};
}

}  // namespace keelson
