// One step of a model's forward and backward pass.
#ifndef KEELSON_CORE_MODEL_LAYERS_LAYER_H_
#define KEELSON_CORE_MODEL_LAYERS_LAYER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/model/spec/layer_spec.h"

namespace keelson {

// The batch's ids as a matrix C [examples, rows of the embeddings] of a layer that takes them: an
// entry for each id, which is the id's coefficient in its example's output.
struct IdMatrix {
  SparseRows by_example;
  // The transposed matrix, with those rows only that have an entry. In training.
  SparseRows by_id;
};

// The properties of a pass that all layers get.
struct Pass {
  int64_t batch = 0;  // examples
  bool training = false;
  // Of a layer that takes ids.
  const IdMatrix* ids = nullptr;
  // Memory of the layer, as KeptFloats has it for so many examples: what the forward pass leaves in
  // it, the backward pass finds.
  absl::Span<DeviceMemory* const> kept = {};
};

// A variable of a layer on the device, or the rows of a table that the batch has. Both are null
// where the layer has none.
struct Parameter {
  const DeviceMemory* value = nullptr;
  DeviceMemory* gradient = nullptr;
  // Of rows: the layer's gradient is added to what another layer has left in `gradient`. A
  // variable's is written.
  bool adds = false;
};

// Keeps no state between calls: the caller keeps inputs and output from the forward to the backward
// pass, as far as ReadsInputsBackward and ReadsOutputBackward say.
class Layer {
 public:
  // One for each input of the layer.
  using Inputs = absl::Span<const DeviceMemory* const>;
  using InputGradients = absl::Span<DeviceMemory* const>;

  virtual ~Layer() = default;

  const LayerSpec& spec() const { return spec_; }

  virtual void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const = 0;
  // From the output's gradient `dy`, which is overwritten, computes the variables' gradients, and
  // those of the inputs whose `dx` is not null. No two of these are the same memory.
  virtual void Backward(Device* device, const Pass& pass, Inputs x, const DeviceMemory& y,
                        DeviceMemory* dy, InputGradients dx) const = 0;

 protected:
  explicit Layer(LayerSpec spec) : spec_(std::move(spec)) {}

 private:
  const LayerSpec spec_;
};

// A layer with one input.
class UnaryLayer : public Layer {
 public:
  virtual void Forward(Device* device, const Pass& pass, const DeviceMemory& x,
                       DeviceMemory* y) const = 0;
  virtual void Backward(Device* device, const Pass& pass, const DeviceMemory& x,
                        const DeviceMemory& y, DeviceMemory* dy, DeviceMemory* dx) const = 0;

  void Forward(Device* device, const Pass& pass, Inputs x, DeviceMemory* y) const final {
    Forward(device, pass, *x[0], y);
  }
  void Backward(Device* device, const Pass& pass, Inputs x, const DeviceMemory& y, DeviceMemory* dy,
                InputGradients dx) const final {
    Backward(device, pass, *x[0], y, dy, dx[0]);
  }

 protected:
  using Layer::Layer;
};

// The activation that a layer of this kind is.
std::optional<ActivationKind> ActivationOf(LayerKind kind);
// Whether the activation after a layer of this kind can be computed with it.
bool TakesActivation(LayerKind kind);
// Whether the backward pass of a layer of this kind reads its inputs, or its output.
bool ReadsInputsBackward(LayerKind kind);
bool ReadsOutputBackward(LayerKind kind);
// Whether a layer of this kind has its input as its output, and so is never made.
bool KeepsElements(LayerKind kind);
// The sizes of the arrays of Pass::kept, in floats per example.
std::vector<int64_t> KeptFloats(const LayerSpec& spec);

// Makes the layer that `spec` describes, with `activation` after it unless that is null, as one
// layer. `index` is its position in the model, which keeps two dropout layers apart. `parameters`
// has one entry for each of the model's variables, by its position; `rows` are those of the layer's
// table, if it has one. Null where KeepsElements.
std::unique_ptr<Layer> MakeLayer(const LayerSpec& spec, size_t index,
                                 absl::Span<const Parameter> parameters,
                                 std::optional<ActivationKind> activation = std::nullopt,
                                 Parameter rows = {});

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_LAYERS_LAYER_H_
