#include "core/model/layers/layers.h"

namespace keelson {
namespace {

PoolGeometry Geometry(const LayerSpec& spec, int64_t batch) {
  return {.batch = batch,
          .in_height = spec.input.dim(0),
          .in_width = spec.input.dim(1),
          .channels = spec.input.dim(2),
          .out_height = spec.output.dim(0),
          .out_width = spec.output.dim(1),
          .size = spec.window,
          .stride = spec.stride,
          .pad_top = spec.pad_top,
          .pad_left = spec.pad_left};
}

class MaxPool : public UnaryLayer {
 public:
  explicit MaxPool(const LayerSpec& spec) : UnaryLayer(spec) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->MaxPool(Geometry(spec(), pass.batch), x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& x, const DeviceMemory& y,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx != nullptr) device->MaxPoolBackward(Geometry(spec(), pass.batch), x, y, *dy, dx);
  }
};

class AvgPool : public UnaryLayer {
 public:
  explicit AvgPool(const LayerSpec& spec) : UnaryLayer(spec) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->AvgPool(Geometry(spec(), pass.batch), x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/,
                const DeviceMemory& /*y*/, DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx != nullptr) device->AvgPoolBackward(Geometry(spec(), pass.batch), *dy, dx);
  }
};

class GlobalAveragePool : public UnaryLayer {
 public:
  explicit GlobalAveragePool(const LayerSpec& spec)
      : UnaryLayer(spec),
        channels_(spec.output.num_elements()),
        positions_(spec.input.num_elements() / channels_) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->GlobalAveragePool(pass.batch, positions_, channels_, x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/,
                const DeviceMemory& /*y*/, DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx == nullptr) return;
    device->GlobalAveragePoolBackward(pass.batch, positions_, channels_, *dy, dx);
  }

 private:
  const int64_t channels_;
  const int64_t positions_;
};

}  // namespace

std::unique_ptr<Layer> MakeGlobalAveragePool(const LayerSpec& spec) {
  return std::make_unique<GlobalAveragePool>(spec);
}

std::unique_ptr<Layer> MakeMaxPool(const LayerSpec& spec) {
  return std::make_unique<MaxPool>(spec);
}

std::unique_ptr<Layer> MakeAvgPool(const LayerSpec& spec) {
  return std::make_unique<AvgPool>(spec);
}

}  // namespace keelson
