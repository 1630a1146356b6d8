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

class Gate : public UnaryLayer {
 public:
  Gate(const LayerSpec& spec, GateKind kind)
      : UnaryLayer(spec), elements_(spec.output.num_elements()), kind_(kind) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->Gate(kind_, pass.batch * elements_, x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& x, const DeviceMemory& /*y*/,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx != nullptr) device->GateBackward(kind_, pass.batch * elements_, x, *dy, dx);
  }

 private:
  const int64_t elements_;
  const GateKind kind_;
};

class Softmax : public UnaryLayer {
 public:
  explicit Softmax(const LayerSpec& spec)
      : UnaryLayer(spec),
        columns_(spec.output.dims().back()),
        rows_per_example_(spec.output.num_elements() / columns_) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->Softmax(pass.batch * rows_per_example_, columns_, x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/, const DeviceMemory& y,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx == nullptr) return;
    device->SoftmaxBackward(pass.batch * rows_per_example_, columns_, y, *dy, dx);
  }

 private:
  const int64_t columns_;
  const int64_t rows_per_example_;
};

}  // namespace

std::unique_ptr<Layer> MakeGate(const LayerSpec& spec, GateKind kind) {
  return std::make_unique<Gate>(spec, kind);
}

std::unique_ptr<Layer> MakeSoftmax(const LayerSpec& spec) {
  return std::make_unique<Softmax>(spec);
}

std::unique_ptr<Layer> MakeActivation(const LayerSpec& spec, ActivationKind kind) {
  return std::make_unique<Activation>(spec, kind);
}

}  // namespace keelson
