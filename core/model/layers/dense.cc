#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Dense : public Layer {
 public:
  Dense(const LayerSpec& spec, Parameter kernel, Parameter bias)
      : Layer(spec),
        inputs_(spec.input.num_elements()),
        units_(spec.output.num_elements()),
        kernel_(kernel),
        bias_(bias) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->MatMul({.m = pass.batch, .n = units_, .k = inputs_}, x, *kernel_.value, y);
    if (bias_.value != nullptr) device->AddBias(pass.batch, units_, *bias_.value, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& x, const DeviceMemory& /*y*/,
                const DeviceMemory& dy, DeviceMemory* dx) const override {
    device->MatMul({.m = inputs_, .n = units_, .k = pass.batch, .transpose_a = true}, x, dy,
                   kernel_.gradient);
    if (bias_.gradient != nullptr) device->BiasGradient(pass.batch, units_, dy, bias_.gradient);
    if (dx == nullptr) return;
    device->MatMul({.m = pass.batch, .n = inputs_, .k = units_, .transpose_b = true}, dy,
                   *kernel_.value, dx);
  }

 private:
  const int64_t inputs_;
  const int64_t units_;
  const Parameter kernel_;
  const Parameter bias_;
};

}  // namespace

std::unique_ptr<Layer> MakeDense(const LayerSpec& spec, Parameter kernel, Parameter bias) {
  return std::make_unique<Dense>(spec, kernel, bias);
}

}  // namespace keelson
