#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Add : public Layer {
 public:
  explicit Add(const LayerSpec& spec) : Layer(spec), elements_(spec.output.num_elements()) {}

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    const int64_t n = pass.batch * elements_;
    device->Add(n, *x[0], *x[1], y);
    for (size_t k = 2; k < x.size(); ++k) device->Add(n, *y, *x[k], y);
  }

  void Backward(Device* device, const Pass& pass, Inputs /*x*/, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients dx) const override {
    const int64_t n = pass.batch * elements_;
    for (DeviceMemory* const one : dx) {
      if (one != nullptr) device->CopyColumns(1, n, *dy, n, 0, one, n, 0);
    }
  }

 private:
  const int64_t elements_;
};

class Multiply : public Layer {
 public:
  explicit Multiply(const LayerSpec& spec) : Layer(spec), elements_(spec.output.num_elements()) {}

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    device->Multiply(pass.batch * elements_, *x[0], *x[1], y);
  }

  void Backward(Device* device, const Pass& pass, Inputs x, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients dx) const override {
    const int64_t n = pass.batch * elements_;
    if (dx[0] != nullptr) device->Multiply(n, *dy, *x[1], dx[0]);
    if (dx[1] != nullptr) device->Multiply(n, *dy, *x[0], dx[1]);
  }

 private:
  const int64_t elements_;
};

class Scale : public UnaryLayer {
 public:
  explicit Scale(const LayerSpec& spec) : UnaryLayer(spec), elements_(spec.output.num_elements()) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    Apply(device, pass, x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/,
                const DeviceMemory& /*y*/, DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx != nullptr) Apply(device, pass, *dy, dx);
  }

 private:
  void Apply(Device* device, const Pass& pass, const DeviceMemory& from, DeviceMemory* to) const {
    const int64_t n = pass.batch * elements_;
    device->CopyColumns(1, n, from, n, 0, to, n, 0);
    device->Scale(spec().scale_factor, n, to);
  }

  const int64_t elements_;
};

}  // namespace

std::unique_ptr<Layer> MakeAdd(const LayerSpec& spec) { return std::make_unique<Add>(spec); }

std::unique_ptr<Layer> MakeMultiply(const LayerSpec& spec) {
  return std::make_unique<Multiply>(spec);
}

std::unique_ptr<Layer> MakeScale(const LayerSpec& spec) { return std::make_unique<Scale>(spec); }

}  // namespace keelson
