#include "core/model/layers/layers.h"

namespace keelson {
namespace {

// From `from` to the shape whose axis k is axis axes[k] of it. Axes of extent 1 come before, to
// make three.
TransposeGeometry GeometryOf(const Shape& from, const std::vector<size_t>& axes) {
  constexpr size_t kAxes = 3;
  const size_t before = kAxes - from.rank();
  TransposeGeometry geometry;
  for (size_t k = 0; k < from.rank(); ++k) {
    geometry.extents[before + k] = from.dims()[k];
    geometry.axes[before + k] = static_cast<int>(before + axes[k]);
  }
  return geometry;
}

std::vector<size_t> Inverse(const std::vector<size_t>& axes) {
  std::vector<size_t> inverse(axes.size());
  for (size_t k = 0; k < axes.size(); ++k) inverse[axes[k]] = k;
  return inverse;
}

class Transpose : public UnaryLayer {
 public:
  explicit Transpose(const LayerSpec& spec)
      : UnaryLayer(spec),
        forward_(GeometryOf(spec.input, spec.axes)),
        backward_(GeometryOf(spec.output, Inverse(spec.axes))) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->Transpose(OfBatch(forward_, pass), x, y);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/,
                const DeviceMemory& /*y*/, DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx != nullptr) device->Transpose(OfBatch(backward_, pass), *dy, dx);
  }

 private:
  static TransposeGeometry OfBatch(TransposeGeometry geometry, const Pass& pass) {
    geometry.batch = pass.batch;
    return geometry;
  }

  const TransposeGeometry forward_;
  const TransposeGeometry backward_;
};

}  // namespace

std::unique_ptr<Layer> MakeTranspose(const LayerSpec& spec) {
  return std::make_unique<Transpose>(spec);
}

}  // namespace keelson
