#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Dropout : public UnaryLayer {
 public:
  Dropout(const LayerSpec& spec, size_t index)
      : UnaryLayer(spec), elements_(spec.output.num_elements()), stream_(index) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    const float rate = pass.training ? spec().dropout_rate : 0.0f;
    device->Dropout(rate, stream_, pass.batch * elements_, x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/,
                const DeviceMemory& /*y*/, DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx == nullptr) return;
    device->Dropout(spec().dropout_rate, stream_, pass.batch * elements_, *dy, dx);
  }

 private:
  const int64_t elements_;
  const uint64_t stream_;
};

}  // namespace

std::unique_ptr<Layer> MakeDropout(const LayerSpec& spec, size_t index) {
  return std::make_unique<Dropout>(spec, index);
}

}  // namespace keelson
