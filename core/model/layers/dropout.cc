#include "core/base/random.h"
#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Dropout : public Layer {
 public:
  Dropout(const LayerSpec& spec, int index)
      : Layer(spec), elements_(spec.output.num_elements()), index_(index) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    const float rate = pass.training ? spec().dropout_rate : 0.0f;
    device->Dropout(rate, Seed(pass), pass.batch * elements_, x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/,
                const DeviceMemory& /*y*/, const DeviceMemory& dy,
                DeviceMemory* dx) const override {
    if (dx == nullptr) return;
    device->Dropout(spec().dropout_rate, Seed(pass), pass.batch * elements_, dy, dx);
  }

 private:
  uint64_t Seed(const Pass& pass) const {
    const auto bits = Philox(pass.dropout_seed, static_cast<uint64_t>(index_), 0);
    return uint64_t{bits[0]} << 32 | bits[1];
  }

  const int64_t elements_;
  const int index_;
};

}  // namespace

std::unique_ptr<Layer> MakeDropout(const LayerSpec& spec, int index) {
  return std::make_unique<Dropout>(spec, index);
}

}  // namespace keelson
