#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Cross : public Layer {
 public:
  Cross(const LayerSpec& spec, const CrossParameters& parameters)
      : Layer(spec),
        features_(spec.output.num_elements()),
        rank_(spec.rank),
        parameters_(parameters) {}

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    const int64_t n = pass.batch * features_;
    DeviceMemory* const u = pass.kept[0];
    const DeviceMemory* from = x[1];
    if (rank_ > 0) {
      DeviceMemory* const t = pass.kept[1];
      device->MatMul({.m = pass.batch, .n = rank_, .k = features_}, *x[1],
                     *parameters_.down_kernel.value, {}, t);
      from = t;
    }
    device->MatMul({.m = pass.batch, .n = features_, .k = inner()}, *from,
                   *parameters_.kernel.value, {.bias = parameters_.bias.value}, u);
    device->Multiply(n, *x[0], *u, y);
    device->Add(n, *y, *x[1], y);
  }

  // Computes du and dt in the place of u and t.
  void Backward(Device* device, const Pass& pass, Inputs x, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients dx) const override {
    const int64_t n = pass.batch * features_;
    DeviceMemory* const u = pass.kept[0];
    if (dx[0] != nullptr) device->Multiply(n, *dy, *u, dx[0]);
    device->Multiply(n, *dy, *x[0], u);
    const DeviceMemory* du = u;
    const Parameter* in = &parameters_.kernel;  // the kernel that takes x
    if (rank_ > 0) {
      DeviceMemory* const t = pass.kept[1];
      device->DenseGradients(pass.batch, rank_, features_, *t, *u, parameters_.kernel.gradient,
                             parameters_.bias.gradient);
      device->MatMul({.m = pass.batch, .n = rank_, .k = features_, .transpose_b = true}, *u,
                     *parameters_.kernel.value, {}, t);
      device->DenseGradients(pass.batch, features_, rank_, *x[1], *t,
                             parameters_.down_kernel.gradient, nullptr);
      du = t;
      in = &parameters_.down_kernel;
    } else {
      device->DenseGradients(pass.batch, features_, features_, *x[1], *u,
                             parameters_.kernel.gradient, parameters_.bias.gradient);
    }
    if (dx[1] == nullptr) return;
    device->MatMul({.m = pass.batch, .n = features_, .k = inner(), .transpose_b = true}, *du,
                   *in->value, {}, dx[1]);
    device->Add(n, *dx[1], *dy, dx[1]);
  }

 private:
  int64_t inner() const { return rank_ > 0 ? rank_ : features_; }

  const int64_t features_;
  const int64_t rank_;
  const CrossParameters parameters_;
};

}  // namespace

std::unique_ptr<Layer> MakeCross(const LayerSpec& spec, const CrossParameters& parameters) {
  return std::make_unique<Cross>(spec, parameters);
}

std::vector<int64_t> KeptByCross(const LayerSpec& spec) {
  const int64_t features = spec.output.num_elements();
  if (spec.rank == 0) return {features};
  return {features, spec.rank};
}

}  // namespace keelson
