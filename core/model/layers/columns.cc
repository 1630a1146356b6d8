#include <vector>

#include "core/model/layers/layers.h"

namespace keelson {
namespace {

// The rows of one example, where the last axis has the columns.
int64_t RowsPerExample(const LayerSpec& spec) {
  return spec.output.num_elements() / spec.output.dims().back();
}

class Concat : public Layer {
 public:
  explicit Concat(const LayerSpec& spec)
      : Layer(spec), rows_(RowsPerExample(spec)), columns_(spec.output.dims().back()) {
    for (const Shape& input : spec.input_shapes) of_input_.push_back(input.dims().back());
  }

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const override {
    int64_t begin = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      device->CopyColumns(pass.batch * rows_, of_input_[k], *x[k], of_input_[k], 0, y, columns_,
                          begin);
      begin += of_input_[k];
    }
  }

  void Backward(Device* device, const Pass& pass, Inputs /*x*/, const DeviceMemory& /*y*/,
                DeviceMemory* dy, InputGradients dx) const override {
    int64_t begin = 0;
    for (size_t k = 0; k < dx.size(); ++k) {
      if (dx[k] != nullptr) {
        device->CopyColumns(pass.batch * rows_, of_input_[k], *dy, columns_, begin, dx[k],
                            of_input_[k], 0);
      }
      begin += of_input_[k];
    }
  }

 private:
  const int64_t rows_;
  const int64_t columns_;
  std::vector<int64_t> of_input_;  // columns
};

class Slice : public UnaryLayer {
 public:
  explicit Slice(const LayerSpec& spec)
      : UnaryLayer(spec),
        rows_(RowsPerExample(spec)),
        columns_(spec.output.dims().back()),
        input_columns_(spec.input.dims().back()) {}

  void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
               DeviceMemory* y) const override {
    device->CopyColumns(pass.batch * rows_, columns_, x, input_columns_, spec().slice_begin, y,
                        columns_, 0);
  }

  void Backward(Device* device, const Pass& pass, const DeviceMemory& /*x*/,
                const DeviceMemory& /*y*/, DeviceMemory* dy, DeviceMemory* dx) const override {
    if (dx == nullptr) return;
    const int64_t rows = pass.batch * rows_;
    if (columns_ < input_columns_) device->Fill(0, rows * input_columns_, dx);
    device->CopyColumns(rows, columns_, *dy, columns_, 0, dx, input_columns_, spec().slice_begin);
  }

 private:
  const int64_t rows_;
  const int64_t columns_;
  const int64_t input_columns_;
};

}  // namespace

std::unique_ptr<Layer> MakeConcat(const LayerSpec& spec) { return std::make_unique<Concat>(spec); }

std::unique_ptr<Layer> MakeSlice(const LayerSpec& spec) { return std::make_unique<Slice>(spec); }

}  // namespace keelson
