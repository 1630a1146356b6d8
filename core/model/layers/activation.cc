#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Activation : public UnaryLayer {
 public:
  Activation(const LayerSpec& spec, ActivationKind kind)
      : UnaryLayer(spec), elements_(spec.output.num_elements()), kind_(kind) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->Activate(kind_, pass.batch * elements_, x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/, const DeviceMemory& y,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx != nullptr) device->ActivateBackward(kind_, pass.batch * elements_, y, *dy, dx);
  }

 private:
  const int64_t elements_;
  const ActivationKind kind_;
};

}  // namespace

std::unique_ptr<Layer> MakeActivation(const LayerSpec& spec, ActivationKind kind) {
  return std::make_unique<Activation>(spec, kind);
}

}  // namespace keelson
