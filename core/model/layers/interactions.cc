#include "core/model/layers/layers.h"

namespace keelson {
namespace {

class Dot : public Layer {
 public:
  explicit Dot(const LayerSpec& spec) : Layer(spec), features_(spec.input.num_elements()) {}

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    device->RowDots(pass.batch, features_, 1, *x[0], *x[1], 0, y);
  }

  void Backward(Device* device, const Pass& pass, Inputs x, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients dx) const override {
    for (size_t k = 0; k < 2; ++k) {
      if (dx[k] == nullptr) continue;
      device->AddScaledRows(pass.batch, features_, 1, *dy, *x[1 - k], 0, dx[k]);
    }
  }

 private:
  const int64_t features_;
};

class Cosine : public Layer {
 public:
  explicit Cosine(const LayerSpec& spec) : Layer(spec), features_(spec.input.num_elements()) {}

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    device->RowDots(pass.batch, features_, 1, *x[0], *x[1], 0, y);
    for (size_t k = 0; k < 2; ++k) {
      DeviceMemory* const inverse_length = pass.kept[k];
      device->RowDots(pass.batch, features_, 1, *x[k], *x[k], 0, inverse_length);
      device->InverseSquareRoot(pass.batch, spec().epsilon, *inverse_length, inverse_length);
      device->Multiply(pass.batch, *y, *inverse_length, y);
    }
  }

  void Backward(Device* device, const Pass& pass, Inputs x, const DeviceMemory& y, DeviceMemory* dy,
                InputGradients dx) const override {
    const int64_t n = pass.batch;
    DeviceMemory* const of_cosine = pass.kept[2];
    device->Multiply(n, *dy, y, of_cosine);
    device->Multiply(n, *dy, *pass.kept[0], dy);
    device->Multiply(n, *dy, *pass.kept[1], dy);
    for (size_t k = 0; k < 2; ++k) {
      if (dx[k] == nullptr) continue;
      DeviceMemory* const factors = pass.kept[k];
      device->Multiply(n, *factors, *factors, factors);
      device->Multiply(n, *factors, *of_cosine, factors);
      device->AddScaledRows(n, features_, 1, *dy, *x[1 - k], 0, dx[k]);
      device->AddScaledRows(n, features_, -1, *factors, *x[k], 1, dx[k]);
    }
  }

 private:
  const int64_t features_;
};

class FactorizationMachine : public Layer {
 public:
  explicit FactorizationMachine(const LayerSpec& spec)
      : Layer(spec), features_(spec.input.num_elements()) {}

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    const int64_t n = pass.batch * features_;
    DeviceMemory* const sum = pass.kept[0];
    device->Add(n, *x[0], *x[1], sum);
    for (size_t k = 2; k < x.size(); ++k) device->Add(n, *sum, *x[k], sum);
    device->RowDots(pass.batch, features_, 0.5f, *sum, *sum, 0, y);
    for (const DeviceMemory* const v : x) {
      device->RowDots(pass.batch, features_, -0.5f, *v, *v, 1, y);
    }
  }

  void Backward(Device* device, const Pass& pass, Inputs x, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients dx) const override {
    for (size_t k = 0; k < x.size(); ++k) {
      if (dx[k] == nullptr) continue;
      device->AddScaledRows(pass.batch, features_, 1, *dy, *pass.kept[0], 0, dx[k]);
      device->AddScaledRows(pass.batch, features_, -1, *dy, *x[k], 1, dx[k]);
    }
  }

 private:
  const int64_t features_;
};

class DotInteraction : public Layer {
 public:
  explicit DotInteraction(const LayerSpec& spec)
      : Layer(spec),
        vectors_(static_cast<int64_t>(spec.inputs.size())),
        dim_(spec.input.num_elements()) {}

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    DeviceMemory* const vectors = pass.kept[0];
    for (size_t k = 0; k < x.size(); ++k) {
      device->CopyColumns(pass.batch, dim_, *x[k], dim_, 0, vectors, vectors_ * dim_, BeginOf(k));
    }
    device->PairwiseDots(GeometryOf(pass), *vectors, y);
  }

  void Backward(Device* device, const Pass& pass, Inputs /*x*/, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients dx) const override {
    DeviceMemory* const gradients = pass.kept[1];
    device->PairwiseDotsBackward(GeometryOf(pass), *pass.kept[0], *dy, gradients);
    for (size_t k = 0; k < dx.size(); ++k) {
      if (dx[k] == nullptr) continue;
      device->CopyColumns(pass.batch, dim_, *gradients, vectors_ * dim_, BeginOf(k), dx[k], dim_,
                          0);
    }
  }

 private:
  int64_t BeginOf(size_t vector) const { return static_cast<int64_t>(vector) * dim_; }
  PairGeometry GeometryOf(const Pass& pass) const {
    return {pass.batch, vectors_, dim_, spec().diagonal};
  }

  const int64_t vectors_;
  const int64_t dim_;
};

}  // namespace

std::unique_ptr<Layer> MakeDot(const LayerSpec& spec) { return std::make_unique<Dot>(spec); }

std::unique_ptr<Layer> MakeCosine(const LayerSpec& spec) { return std::make_unique<Cosine>(spec); }

std::vector<int64_t> KeptByCosine() { return {1, 1, 1}; }

std::unique_ptr<Layer> MakeFactorizationMachine(const LayerSpec& spec) {
  return std::make_unique<FactorizationMachine>(spec);
}

std::vector<int64_t> KeptByFactorizationMachine(const LayerSpec& spec) {
  return {spec.input.num_elements()};
}

std::unique_ptr<Layer> MakeDotInteraction(const LayerSpec& spec) {
  return std::make_unique<DotInteraction>(spec);
}

std::vector<int64_t> KeptByDotInteraction(const LayerSpec& spec) {
  const int64_t vectors = static_cast<int64_t>(spec.inputs.size()) * spec.input.num_elements();
  return {vectors, vectors};
}

}  // namespace keelson
