#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Conv2D : public UnaryLayer {
 public:
  Conv2D(const LayerSpec& spec, Parameter kernel, Parameter bias,
         std::optional<ActivationKind> activation)
      : UnaryLayer(spec), kernel_(kernel), bias_(bias), activation_(activation) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->Conv2D(Geometry(pass.batch), x, *kernel_.value,
                   {.bias = bias_.value, .activation = activation_}, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& x, const DeviceMemory& y,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    const ConvGeometry geometry = Geometry(pass.batch);
    if (activation_.has_value()) {
      device->ActivateBackward(*activation_, geometry.out_size(), y, *dy, dy);
    }
    device->Conv2DBackwardFilter(geometry, x, *dy, kernel_.gradient);
    if (bias_.gradient != nullptr) {
      const int64_t pixels = geometry.batch * geometry.out_height * geometry.out_width;
      device->BiasGradient(pixels, geometry.out_channels, *dy, bias_.gradient);
    }
    if (dx != nullptr) device->Conv2DBackwardData(geometry, *kernel_.value, *dy, dx);
  }

 private:
  ConvGeometry Geometry(int64_t batch) const {
    const Shape& in = spec().input;
    const Shape& out = spec().output;
    return {.batch = batch,
            .in_height = in.dim(0),
            .in_width = in.dim(1),
            .in_channels = in.dim(2),
            .out_height = out.dim(0),
            .out_width = out.dim(1),
            .out_channels = out.dim(2),
            .kernel = spec().window,
            .stride = spec().stride,
            .pad_top = spec().pad_top,
            .pad_left = spec().pad_left};
  }

  const Parameter kernel_;
  const Parameter bias_;
  const std::optional<ActivationKind> activation_;
};

}  // namespace

std::unique_ptr<Layer> MakeConv2D(const LayerSpec& spec, Parameter kernel, Parameter bias,
                                  std::optional<ActivationKind> activation) {
  return std::make_unique<Conv2D>(spec, kernel, bias, activation);
}

}  // namespace keelson
