#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class BatchNorm : public UnaryLayer {
 public:
  BatchNorm(const LayerSpec& spec, const BatchNormParameters& parameters)
      : UnaryLayer(spec),
        channels_(spec.output.dims().back()),
        rows_per_example_(spec.output.num_elements() / channels_),
        parameters_(parameters) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    const Parameter& mean = parameters_.moving_mean;
    const Parameter& variance = parameters_.moving_variance;
    if (pass.training) {
      device->BatchNorm(Geometry(pass), x, parameters_.gamma.value, parameters_.beta.value,
                        mean.gradient, variance.gradient, y);
    } else {
      device->BatchNormInference(Geometry(pass), x, parameters_.gamma.value, parameters_.beta.value,
                                 *mean.value, *variance.value, y);
    }
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& x, const DeviceMemory& /*y*/,
                DeviceMemory* dy, DeviceMemory* dx) const override {
    device->BatchNormBackward(Geometry(pass), x, parameters_.gamma.value,
                              *parameters_.moving_mean.gradient,
                              *parameters_.moving_variance.gradient, *dy,
                              parameters_.gamma.gradient, parameters_.beta.gradient, dx);
  }

 private:
  BatchNormGeometry Geometry(const Pass& pass) const {
    return {
        .rows = pass.batch * rows_per_example_, .channels = channels_, .epsilon = spec().epsilon};
  }

  const int64_t channels_;
  const int64_t rows_per_example_;
  const BatchNormParameters parameters_;
};

}  // namespace

std::unique_ptr<Layer> MakeBatchNorm(const LayerSpec& spec, const BatchNormParameters& parameters) {
  return std::make_unique<BatchNorm>(spec, parameters);
}

}  // namespace keelson
