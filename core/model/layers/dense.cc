#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Dense : public UnaryLayer {
 public:
  Dense(const LayerSpec& spec, Parameter kernel, Parameter bias,
        std::optional<ActivationKind> activation)
      : UnaryLayer(spec),
        inputs_(spec.input.num_elements()),
        units_(spec.output.num_elements()),
        kernel_(kernel),
        bias_(bias),
        activation_(activation) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->MatMul({.m = pass.batch, .n = units_, .k = inputs_}, x, *kernel_.value,
                   {.bias = bias_.value, .activation = activation_}, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& x, const DeviceMemory& y,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    if (activation_.has_value()) {
      device->ActivateBackward(*activation_, pass.batch * units_, y, *dy, dy);
    }
    device->DenseGradients(pass.batch, inputs_, units_, x, *dy, kernel_.gradient, bias_.gradient);
    if (dx == nullptr) return;
    device->MatMul({.m = pass.batch, .n = inputs_, .k = units_, .transpose_b = true}, *dy,
                   *kernel_.value, {}, dx);
  }

 private:
  const int64_t inputs_;
  const int64_t units_;
  const Parameter kernel_;
  const Parameter bias_;
  const std::optional<ActivationKind> activation_;
};

}  // namespace

std::unique_ptr<Layer> MakeDense(const LayerSpec& spec, Parameter kernel, Parameter bias,
                                 std::optional<ActivationKind> activation) {
  return std::make_unique<Dense>(spec, kernel, bias, activation);
}

}  // namespace keelson
